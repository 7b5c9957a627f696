// SPDX-License-Identifier: Apache-2.0
#include "models/layers/embedding.h"

#include <ATen/ops/empty.h>

namespace phalanx {

torch::nn::Embedding make_embedding(int64_t rows, int64_t width, double initial_std) {
  return torch::nn::Embedding(torch::nn::EmbeddingOptions(rows, width)
                                  ._weight(at::empty({rows, width}).normal_(0, initial_std)));
}

}  // namespace phalanx
