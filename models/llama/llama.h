// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/rotary.h"
#include "models/llama/config.h"
#include "models/llama/hugging_face.h"
#include "models/llama/layers.h"
#include "trainer/api/model.h"

namespace phalanx {

/// Llama (Touvron et al. 2023; Grattafiori et al. 2024), and Qwen2, which differs by a choice of
/// its config. Parameters have the names and shapes of Hugging Face's LlamaForCausalLM without the
/// prefix `model.`, and start from the same distributions.
class Llama : public Model<CausalLanguageModel> {
 public:
  using Config = llama::Config;

  explicit Llama(const Config& config);

  static const HuggingFaceModel& hugging_face() { return llama::hugging_face_table(); }

  /// See CausalLanguageModel. Throws std::invalid_argument for more than `context_length` tokens.
  at::Tensor logits(const at::Tensor& tokens) override;
  bool separates_documents() const override { return true; }
  std::optional<HiddenStates> hidden_states(const at::Tensor& tokens,
                                            const at::Tensor& positions) override;
  std::optional<HiddenStates> next_states(const at::Tensor& tokens, const at::Tensor& positions,
                                          DecoderCache& cache) override;

  int64_t vocabulary_size() const override { return config_.vocab_size; }
  int64_t context_length() const override { return config_.max_position_embeddings; }

 private:
  HiddenStates states(const at::Tensor& tokens, const at::Tensor& positions, DecoderCache* cache);

  Config config_;
  RotaryPositions rotary_;
  Embedding embed_tokens_;  // [vocab_size, hidden_size].
  std::vector<llama::Block> blocks_;
  RmsNorm norm_;
  Linear lm_head_;  // [vocab_size, hidden_size]; none with tie_word_embeddings.
};

}  // namespace phalanx
