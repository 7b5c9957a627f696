// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/api/batch.h"

namespace phalanx {

/// Samples by their numbers (Batch::sample_numbers), as an error is explained by them.
class KnownSamples {
 public:
  virtual ~KnownSamples() = default;

  /// What is wrong with a sample, behind its place: "'a.jsonl', line 3: ..."; by default behind its
  /// number.
  virtual std::string describe(int64_t sample, const std::string& problem) const;

  /// These samples once more, with their numbers, in host memory; nullptr where that is not
  /// possible, as by default. Throws what reading them throws.
  virtual std::unique_ptr<Batch> read_again(std::span<const int64_t> samples) const;
};

}  // namespace phalanx
