// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Logits before their last product: they are states · headᵀ. A loss can take them in parts, so
/// that those of all places are never in memory at once.
struct HiddenStates {
  at::Tensor states;  ///< [batch, length, width].
  at::Tensor head;    ///< [vocabulary, width].
};

/// Their product: logits [batch, length, vocabulary].
at::Tensor logits_of(const HiddenStates& hidden);

/// Those behind the last place alone, [batch, vocabulary].
at::Tensor last_logits_of(const HiddenStates& hidden);

}  // namespace phalanx
