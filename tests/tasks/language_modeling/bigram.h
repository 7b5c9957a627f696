// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "models/interfaces/causal_language_model.h"
#include "trainer/api/model_base.h"

namespace phalanx {

/// The smallest language model there is: the logits of the next token are a row of a table.
class Bigram : public ModelBase, public CausalLanguageModel {
 public:
  explicit Bigram(int64_t vocabulary = 256, int64_t context = 8);
  ~Bigram() override;

  torch::nn::Module& module() override { return *module_; }
  at::Tensor logits(const at::Tensor& tokens) override;
  int64_t vocabulary_size() const override { return table_.size(0); }
  int64_t context_length() const override { return context_; }

  at::Tensor& table() { return table_; }
  /// The longest sequence it has been given.
  int64_t longest() const { return longest_; }

 private:
  std::unique_ptr<torch::nn::Module> module_;
  at::Tensor table_;
  int64_t context_;
  int64_t longest_ = 0;
};

}  // namespace phalanx
