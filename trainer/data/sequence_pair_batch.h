// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/data/token_batch.h"

namespace phalanx {

/// Sequences that a model reads, each with the one that it writes. `samples` is the number of
/// pairs, `tokens` that of targets.
struct SequencePairBatch : Batch {
  std::vector<at::Tensor*> tensors() override {
    if (!mask.defined()) return {&inputs, &targets};
    return {&inputs, &mask, &targets};
  }
  std::vector<std::string_view> tensor_names() const override {
    if (!mask.defined()) return {"inputs", "targets"};
    return {"inputs", "mask", "targets"};
  }

  at::Tensor inputs;   ///< int64 [samples, input length].
  at::Tensor mask;     ///< bool, as inputs: false at padding. Undefined: there is none.
  at::Tensor targets;  ///< int64 [samples, output length]; kNoTarget at padding.
};

}  // namespace phalanx
