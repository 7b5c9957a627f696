// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/interfaces/decoder_cache.h"
#include "trainer/generation/writer.h"

namespace phalanx {

/// Goes on from prompts. A text that has become longer than the model's context is read from its
/// last context_length tokens on, anew for each token.
class CausalWriter final : public Writer {
 public:
  /// No prompt is empty. Without `use_cache` the model reads the whole text for each token.
  CausalWriter(CausalLanguageModel& model, std::span<const std::vector<int32_t>> prompts,
               bool use_cache);

  at::Tensor begin() override;
  at::Tensor next(const at::Tensor& tokens) override;
  void select(const at::Tensor& rows) override;
  void idle() override;

 private:
  // The logits behind the last of all columns; `added` of them are new. Calls the model once,
  // whatever the rows are: ranks that hold parts of it call it as often as each other.
  at::Tensor read(int64_t added);
  at::Tensor read_with_cache(int64_t added);
  at::Tensor read_padded(const at::Tensor& tokens, int64_t left_out);
  // The logits behind each row's column in `last` (int64 [rows, 1]); undefined: behind the last
  // one.
  at::Tensor read_again(const at::Tensor& tokens, const at::Tensor& positions,
                        const at::Tensor& last);

  CausalLanguageModel& model_;
  bool use_cache_;
  at::Tensor tokens_;   // int64 [rows, columns]; shorter prompts are padded on the left.
  at::Tensor padding_;  // int64 [rows, 1]: columns of a row that are no part of its text.
  bool is_padded_;
  DecoderCache cache_;
};

}  // namespace phalanx
