// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace phalanx {

/// A sample that cannot be read.
struct BrokenSample {
  std::string source;   ///< Its file.
  std::string kind;     ///< What is wrong, without numbers: the end of a run counts by it.
  std::string message;  ///< What is wrong, with the place.
};

/// Thrown by what reads a sample. A loader may leave the sample out.
class BrokenSampleError : public std::runtime_error {
 public:
  explicit BrokenSampleError(BrokenSample sample)
      : std::runtime_error(sample.message), sample_(std::move(sample)) {}

  const BrokenSample& sample() const { return sample_; }

 private:
  BrokenSample sample_;
};

}  // namespace phalanx
