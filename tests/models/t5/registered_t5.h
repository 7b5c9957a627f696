// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "models/interfaces/sequence_to_sequence_model.h"
#include "models/t5/config.h"
#include "trainer/api/model_base.h"
#include "trainer/config/tree/node.h"

namespace phalanx {

/// A T5 that the registry makes, by the interfaces that it has: models/t5/t5.h takes ten seconds to
/// compile.
class RegisteredT5 : public ModelBase, public SequenceToSequenceModel {
 public:
  explicit RegisteredT5(const t5::Config& config);
  /// Takes a section that has every field.
  explicit RegisteredT5(const config::Node& section);

  torch::nn::Module& module() override { return model_->module(); }
  at::Tensor encode(const at::Tensor& inputs, const at::Tensor& mask) override {
    return interface_.encode(inputs, mask);
  }
  HiddenStates decode(const at::Tensor& outputs, const at::Tensor& encoded,
                      const at::Tensor& mask) override {
    return interface_.decode(outputs, encoded, mask);
  }
  std::optional<HiddenStates> next_states(const at::Tensor& outputs, const at::Tensor& encoded,
                                          const at::Tensor& mask, DecoderCache& cache) override {
    return interface_.next_states(outputs, encoded, mask, cache);
  }
  int64_t vocabulary_size() const override { return interface_.vocabulary_size(); }
  int64_t decoder_start_token() const override { return interface_.decoder_start_token(); }

  /// Logits [batch, output length, vocabulary] of `decode` after `encode`.
  at::Tensor logits(const at::Tensor& inputs, const at::Tensor& mask, const at::Tensor& outputs);

 private:
  std::shared_ptr<ModelBase> model_;
  SequenceToSequenceModel& interface_;  ///< The model's.
};

/// Small sizes, all different: two blocks a half, a vocabulary of 61. T5's, or those of T5 v1.1.
t5::Config tiny_t5();
t5::Config tiny_t5_v1_1();

}  // namespace phalanx
