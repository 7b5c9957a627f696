// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "trainer/api/lookup_table.h"

namespace phalanx {

/// A table of vectors, [rows, width], drawn from a normal distribution of this standard deviation;
/// ids (int64, any shape) to [..., width]. torch::nn::Embedding's own constructor would draw
/// it twice.
torch::nn::Embedding make_embedding(int64_t rows, int64_t width, double initial_std);

/// The same as a table that engines may keep elsewhere. A model that computes with its `weight` in
/// other ways than by lookups says so (TableUse::whole).
class EmbeddingImpl : public torch::nn::EmbeddingImpl, public LookupTable {
 public:
  EmbeddingImpl(int64_t rows, int64_t width, double initial_std, TableUse use);

  at::Tensor forward(const at::Tensor& ids);
};
TORCH_MODULE(Embedding);

}  // namespace phalanx
