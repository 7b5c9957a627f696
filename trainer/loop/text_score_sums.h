// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/named_values.h"

namespace phalanx {

class Ranks;

/// What the texts of a validation come to: the scores of samples.
class TextScoreSums {
 public:
  /// Adds the scores of a micro-batch of this rank, one list a sample.
  void add(const Batch& batch, const std::vector<NamedValues>& scores);

  /// The means over the samples of all ranks. Every rank calls it, once. Throws UserError without a
  /// score.
  NamedValues means(const Ranks& ranks) const;

 private:
  NamedValues sums_;
  int64_t samples_ = 0;
};

}  // namespace phalanx
