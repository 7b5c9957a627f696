// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/api/batch.h"

namespace phalanx {

/// The target of a place that the loss leaves out (cross_entropy's ignore_index).
inline constexpr int64_t kNoTarget = -100;

/// Sequences of tokens, each with the one that follows it. `samples` is the number of sequences,
/// `tokens` that of targets.
struct TokenBatch : Batch {
  std::vector<at::Tensor*> tensors() override {
    if (!positions.defined()) return {&inputs, &targets};
    return {&inputs, &targets, &positions};
  }
  std::vector<std::string_view> tensor_names() const override {
    return {"inputs", "targets", "positions"};
  }

  at::Tensor inputs;   ///< int64 [samples, length].
  at::Tensor targets;  ///< int64 [samples, length]: inputs one token later, or kNoTarget.
  /// int64 [samples, length]: the place of each token in its document, where documents are kept
  /// apart; 0 begins one. Otherwise undefined.
  at::Tensor positions;
};

}  // namespace phalanx
