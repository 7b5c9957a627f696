// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/gpt2/config.h"
#include "models/gpt2/hugging_face.h"
#include "models/gpt2/layers.h"
#include "models/interfaces/causal_language_model.h"
#include "models/layers/embedding.h"
#include "models/layers/norm.h"
#include "trainer/api/model.h"

namespace phalanx {

/// GPT-2 with the head tied to the token embedding. Parameters have the names and shapes of
/// Hugging Face's GPT2LMHeadModel without the prefix `transformer.`, and start from the same
/// distributions. The forward pass computes the same, gelu_new by the fused kernel.
class Gpt2 : public Model<CausalLanguageModel> {
 public:
  using Config = gpt2::Config;

  explicit Gpt2(const Config& config);

  static const HuggingFaceModel& hugging_face() { return gpt2::hugging_face_table(); }

  /// See CausalLanguageModel. Throws std::invalid_argument for more than `context_length` tokens.
  at::Tensor logits(const at::Tensor& tokens) override;
  bool separates_documents() const override { return true; }
  std::optional<HiddenStates> hidden_states(const at::Tensor& tokens,
                                            const at::Tensor& positions) override;
  std::optional<HiddenStates> next_states(const at::Tensor& tokens, const at::Tensor& positions,
                                          DecoderCache& cache) override;

  int64_t vocabulary_size() const override { return config_.vocab_size; }
  int64_t context_length() const override { return config_.n_positions; }

 private:
  HiddenStates states(const at::Tensor& tokens, const at::Tensor& positions, DecoderCache* cache);

  Config config_;
  Embedding wte_;  // [vocab_size, n_embd]; the head, too.
  Embedding wpe_;  // [n_positions, n_embd].
  std::vector<gpt2::Block> blocks_;
  LayerNorm ln_f_;
};

}  // namespace phalanx
