// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "models/interfaces/decoder_cache.h"
#include "models/interfaces/hidden_states.h"

namespace phalanx {

/// A model that predicts each next token from those before it.
class CausalLanguageModel {
 public:
  static constexpr std::string_view kInterface = "CausalLanguageModel";

  virtual ~CausalLanguageModel() = default;

  /// Logits [batch, length, vocabulary] on the model's device, for token ids [batch, length]
  /// (int64) on any.
  virtual at::Tensor logits(const at::Tensor& tokens) = 0;

  /// Logits of sequences that hold several documents: a token attends only within its document.
  /// `positions` (int64 [batch, length]) is the index of each token in its document; 0 begins one.
  /// By default the product of `hidden_states`; throws std::logic_error if there are none.
  virtual at::Tensor logits_by_document(const at::Tensor& tokens, const at::Tensor& positions);
  virtual bool separates_documents() const { return false; }

  /// What the logits are computed from, so that a loss need not hold all of them. `positions` as in
  /// logits_by_document, or undefined: each row is one document. Optional; nothing where the logits
  /// are no product of states and a matrix.
  virtual std::optional<HiddenStates> hidden_states(const at::Tensor& tokens,
                                                    const at::Tensor& positions);

  /// The same of tokens that go on from those in `cache`, which takes them in, too: what a text is
  /// written with. `positions`, if defined, are those of the new tokens, and were so from the first
  /// on. Optional; nothing, and the cache as it was, for a model that keeps none.
  virtual std::optional<HiddenStates> next_states(const at::Tensor& tokens,
                                                  const at::Tensor& positions, DecoderCache& cache);

  /// Number of different tokens.
  virtual int64_t vocabulary_size() const = 0;

  /// The longest sequence it takes, in tokens.
  virtual int64_t context_length() const = 0;
};

}  // namespace phalanx
