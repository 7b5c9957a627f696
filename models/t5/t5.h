// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "models/interfaces/sequence_to_sequence_model.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/t5/block.h"
#include "models/t5/config.h"
#include "models/t5/hugging_face.h"
#include "trainer/api/model.h"
#include "trainer/api/without_stages.h"

namespace phalanx {

/// T5 (Raffel et al. 2020) and T5 v1.1. Parameters have the names and shapes of Hugging Face's
/// T5ForConditionalGeneration, start from the same distributions, and drop out at the same places.
class T5 : public Model<SequenceToSequenceModel>, public WithoutStages {
 public:
  using Config = t5::Config;

  explicit T5(const Config& config);

  static const HuggingFaceModel& hugging_face() { return t5::hugging_face_table(); }

  /// See SequenceToSequenceModel. No length is too long: far places share a bucket of positions.
  at::Tensor encode(const at::Tensor& inputs, const at::Tensor& mask) override;
  HiddenStates decode(const at::Tensor& outputs, const at::Tensor& encoded,
                      const at::Tensor& mask) override;
  std::optional<HiddenStates> next_states(const at::Tensor& outputs, const at::Tensor& encoded,
                                          const at::Tensor& mask, DecoderCache& cache) override;

  int64_t vocabulary_size() const override { return config_.vocab_size; }
  int64_t decoder_start_token() const override { return config_.decoder_start_token_id; }
  std::string_view why_no_stages() const override;

 private:
  HiddenStates states(const at::Tensor& outputs, const at::Tensor& encoded, const at::Tensor& mask,
                      DecoderCache* cache);
  at::Tensor embed(const at::Tensor& tokens);
  at::Tensor attention_mask(const at::Tensor& mask) const;

  Config config_;
  Embedding shared_;  // [vocab_size, d_model], of both sides.
  t5::Stack encoder_;
  t5::Stack decoder_;
  Linear lm_head_;  // [vocab_size, d_model]; none with tie_word_embeddings.
};

}  // namespace phalanx
