// SPDX-License-Identifier: Apache-2.0
#include "models/layers/embedding.h"

#include <ATen/ops/empty.h>

namespace phalanx {
namespace {

torch::nn::EmbeddingOptions options_of(int64_t rows, int64_t width, double initial_std) {
  return torch::nn::EmbeddingOptions(rows, width)
      ._weight(at::empty({rows, width}).normal_(0, initial_std));
}

}  // namespace

torch::nn::Embedding make_embedding(int64_t rows, int64_t width, double initial_std) {
  return torch::nn::Embedding(options_of(rows, width, initial_std));
}

EmbeddingImpl::EmbeddingImpl(int64_t rows, int64_t width, double initial_std, TableUse use)
    : torch::nn::EmbeddingImpl(options_of(rows, width, initial_std)), LookupTable(use) {}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids) {
  return lookup() ? lookup()(ids) : torch::nn::EmbeddingImpl::forward(ids);
}

}  // namespace phalanx
