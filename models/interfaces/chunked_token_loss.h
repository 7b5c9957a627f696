// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx {

/// The mean cross-entropy, in nats, of `targets` (int64 [places]) under the logits states · headᵀ,
/// of `states` [places, width] and `head` [vocabulary, width]; 0 without places. Computes
/// `chunk` rows of logits at a time and, in the same forward pass, the gradients of states and
/// head: no logits outlive it, and none are computed twice. The backward pass scales these
/// gradients.
///
/// It computes in the dtype of the states, under autocast in that of autocast. The loss is float32
/// for those of 16 bits, and so is the sum of the head's gradient over the chunks.
///
/// One backward pass only, and no second derivative: both throw std::logic_error.
at::Tensor chunked_token_loss(const at::Tensor& states, const at::Tensor& head,
                              const at::Tensor& targets, int64_t chunk);

}  // namespace phalanx
