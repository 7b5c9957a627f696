#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "trainer/core/causal_language_model.h"
#include "trainer/core/model.h"

namespace phalanx {

/// The smallest language model there is: the logits of the next token are a row of a table.
class Bigram : public Model<CausalLanguageModel> {
 public:
  explicit Bigram(int64_t vocabulary = 256, int64_t context = 8)
      : table_(register_parameter("table", at::zeros({vocabulary, vocabulary}))),
        context_(context) {}

  at::Tensor logits(const at::Tensor& tokens) override {
    longest_ = std::max(longest_, tokens.size(1));
    return at::embedding(table_, tokens);
  }
  int64_t vocabulary_size() const override { return table_.size(0); }
  int64_t context_length() const override { return context_; }

  at::Tensor& table() { return table_; }
  /// The longest sequence it has been given.
  int64_t longest() const { return longest_; }

 private:
  at::Tensor table_;
  int64_t context_;
  int64_t longest_ = 0;
};

}  // namespace phalanx
