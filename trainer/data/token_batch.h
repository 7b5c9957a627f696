// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/api/batch.h"

namespace phalanx {

/// Sequences of tokens, each with the one that follows it. `samples` is the number of sequences,
/// `tokens` that of targets.
struct TokenBatch : Batch {
  std::vector<at::Tensor*> tensors() override { return {&inputs, &targets}; }

  at::Tensor inputs;   ///< int64 [samples, length].
  at::Tensor targets;  ///< int64 [samples, length]: inputs one token later.
};

}  // namespace phalanx
