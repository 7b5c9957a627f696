// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"

namespace phalanx {

/// Gradients that a backward pass leaves as they are, although it computes some for the same
/// parameters: taken away before the pass, and put back after it.
class SetAside {
 public:
  /// `copies`: the next pass may write into the memory of a gradient, as DDP does with buckets that
  /// gradients are views of.
  explicit SetAside(bool copies) : copies_(copies) {}

  void take(std::span<const NamedParameter> parameters);
  /// Drops what the pass has brought to the parameters.
  void put_back();

 private:
  bool copies_;
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients_;  ///< By parameter; undefined: none.
};

}  // namespace phalanx
