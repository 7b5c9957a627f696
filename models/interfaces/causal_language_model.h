// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

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

  /// The same for sequences of several documents, in which no token sees another document than its
  /// own: `positions` (int64 [batch, length]) has the place of each token in its document; 0 begins
  /// one. Optional; throws std::logic_error where `separates_documents` is false.
  virtual at::Tensor logits_by_document(const at::Tensor& tokens, const at::Tensor& positions);
  virtual bool separates_documents() const { return false; }

  /// What the logits are computed from, so that a loss need not hold all of them. `positions` as in
  /// logits_by_document, or undefined: each row is one document. Optional; nothing where the logits
  /// are no product of states and a matrix.
  virtual std::optional<HiddenStates> hidden_states(const at::Tensor& tokens,
                                                    const at::Tensor& positions);

  /// Number of different tokens.
  virtual int64_t vocabulary_size() const = 0;

  /// The longest sequence it takes, in tokens.
  virtual int64_t context_length() const = 0;
};

}  // namespace phalanx
