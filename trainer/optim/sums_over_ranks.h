// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Tensors that are summed over ranks together, in one collective.
class SumsOverRanks {
 public:
  /// In float64; the values are this rank's until `reduce`.
  void add(const at::Tensor& values) { values_.push_back(values); }

  /// Sums in place; none are left to add up. All ranks call it, with as many of the same sizes.
  void reduce(const Ranks& ranks);

 private:
  std::vector<at::Tensor> values_;
};

}  // namespace phalanx
