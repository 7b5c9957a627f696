// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/embedding.h>

#include <cstdint>

namespace phalanx {

/// A table of vectors, [rows, width], drawn from a normal distribution of this standard deviation;
/// ids (int64, any shape) to [..., width]. torch::nn::Embedding's own constructor would draw
/// it twice.
torch::nn::Embedding make_embedding(int64_t rows, int64_t width, double initial_std);

}  // namespace phalanx
