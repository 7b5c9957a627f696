// SPDX-License-Identifier: Apache-2.0
#include "tests/tasks/language_modeling/bigram.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <algorithm>

namespace phalanx {

Bigram::Bigram(int64_t vocabulary, int64_t context)
    : module_(std::make_unique<torch::nn::Module>()),
      table_(module_->register_parameter("table", at::zeros({vocabulary, vocabulary}))),
      context_(context) {}

Bigram::~Bigram() = default;

at::Tensor Bigram::logits(const at::Tensor& tokens) {
  longest_ = std::max(longest_, tokens.size(1));
  return at::embedding(table_, tokens);
}

}  // namespace phalanx
