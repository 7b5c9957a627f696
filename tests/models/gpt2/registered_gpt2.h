// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "models/gpt2/config.h"
#include "models/interfaces/causal_language_model.h"
#include "trainer/api/model_base.h"

namespace phalanx {

/// A Gpt2 that the registry makes, by the interfaces that it has: models/gpt2/gpt2.h takes ten
/// seconds to compile.
class RegisteredGpt2 : public ModelBase, public CausalLanguageModel {
 public:
  explicit RegisteredGpt2(const gpt2::Config& config);

  torch::nn::Module& module() override { return model_->module(); }
  at::Tensor logits(const at::Tensor& tokens) override { return interface_.logits(tokens); }
  at::Tensor logits_by_document(const at::Tensor& tokens, const at::Tensor& positions) override {
    return interface_.logits_by_document(tokens, positions);
  }
  int64_t vocabulary_size() const override { return interface_.vocabulary_size(); }
  int64_t context_length() const override { return interface_.context_length(); }

 private:
  std::shared_ptr<ModelBase> model_;
  CausalLanguageModel& interface_;  ///< The model's.
};

}  // namespace phalanx
