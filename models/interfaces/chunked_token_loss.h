// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <cstdint>

#include "models/interfaces/token_loss_terms.h"

namespace phalanx {

/// The mean cross-entropy, in nats, of `targets` (int64 [places]) under the logits states · headᵀ,
/// of `states` [places, width] and `head` [vocabulary, width]; 0 without places. Computes
/// `chunk` rows of logits at a time and, in the same forward pass, the gradients of states and
/// head: no logits outlive it, and none are computed twice. The backward pass scales these
/// gradients.
///
/// It computes in the dtype of the states, under autocast in that of autocast. The loss is float32
/// for those of 16 bits, and so is the sum of the head's gradient over the chunks; on CUDA the
/// logits too.
///
/// Logits lie in rows of `columns`, at least the vocabulary; those beyond it have probability 0.
/// The products are computed with the head in as many rows.
///
/// One backward pass only, and no second derivative: both throw std::logic_error.
at::Tensor chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                              const at::Tensor& targets, int64_t chunk, int64_t columns);

/// The same with logit_columns of the states' device.
at::Tensor chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                              const at::Tensor& targets, int64_t chunk);

/// The same with further terms. The gradient of the logits is computed in the dtype of the loss,
/// terms included, and rounded once.
TokenLossParts chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                                  const at::Tensor& targets, int64_t chunk, int64_t columns,
                                  const TokenLossTerms& terms);

/// How wide rows of logits are best: on a GPU a multiple of 64, unless 8 divides the vocabulary
/// already. cuBLAS has fast products of 16 bits for sizes that 8 divides only, whatever the
/// strides: an H200 computed GPT-2's three of 50,257 columns four times slower than those of
/// 50,304. On the CPU the vocabulary.
int64_t logit_columns(c10::DeviceType device, int64_t vocabulary);

}  // namespace phalanx
