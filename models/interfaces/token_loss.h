// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/hidden_states.h"
#include "models/interfaces/token_loss_terms.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

/// How a task computes the loss of its tokens: a section of its config.
struct TokenLossConfig {
  std::optional<int64_t>
      chunk;  ///< Places whose logits are in memory together; 0: all; nothing: auto.
  double label_smoothing = 0;  ///< See TokenLossTerms.
  double z_loss = 0;           ///< See TokenLossTerms.

  TokenLossTerms terms() const { return {.label_smoothing = label_smoothing, .z_loss = z_loss}; }
  /// The cross-entropy alone, computed in the same way: what a validation measures.
  TokenLossConfig without_terms() const { return {.chunk = chunk}; }

  static void describe(config::Schema<TokenLossConfig>& s);
};

/// How the loss of a micro-batch is computed.
struct LossChunks {
  /// Places whose logits are computed together (chunked_token_loss). Nothing: all logits are kept
  /// for autograd, as is fastest for few.
  std::optional<int64_t> places;

  bool operator==(const LossChunks&) const = default;
};

/// By the config, or by default for so many places and tokens. A GPU has memory for larger chunks,
/// and each one costs a pass over the head's gradient.
LossChunks loss_chunks(const TokenLossConfig& config, c10::DeviceType device, int64_t places,
                       int64_t vocabulary);

/// The mean cross-entropy, in nats, of the tokens that `logits` [batch, length, vocabulary]
/// predict: `targets` is int64 [batch, length], -100 at places that are left out; `tokens` is the
/// number of the others. 0 if that is 0. In float32 if the logits have 16 bits: bfloat16,
/// with 8 significant bits, would keep two digits of a loss (transformers' ForCausalLMLoss).
at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& targets, int64_t tokens);

/// The same for the logits of `hidden`, of which no more than a chunk need be in memory
/// (chunked_token_loss).
at::Tensor token_loss(const HiddenStates& hidden, const at::Tensor& targets, int64_t tokens,
                      const TokenLossConfig& config = {});

/// Losses by name, whose sum is differentiated: what a task returns as its Loss.
using NamedLosses = std::vector<std::pair<std::string, at::Tensor>>;

/// The loss with the terms of the config. Without any it is "loss", the same as token_loss; else
/// "cross_entropy", with all gradients, and what "label_smoothing" and "z_loss" add, each where the
/// config has it.
NamedLosses token_losses(const at::Tensor& logits, const at::Tensor& targets, int64_t tokens,
                         const TokenLossConfig& config);

/// The same for the logits of `hidden`, see token_loss.
NamedLosses token_losses(const HiddenStates& hidden, const at::Tensor& targets, int64_t tokens,
                         const TokenLossConfig& config);

}  // namespace phalanx
