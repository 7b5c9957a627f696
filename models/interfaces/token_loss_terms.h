// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// What a loss of tokens has beside their cross-entropy.
struct TokenLossTerms {
  /// The share of the target's probability that goes to all tokens alike, as torch's cross_entropy
  /// has it.
  double label_smoothing = 0;
  /// Factor of (log Σ exp(logits))², which keeps logits from drifting (PaLM, Chowdhery et al.,
  /// 2022).
  double z_loss = 0;

  bool any() const { return label_smoothing > 0 || z_loss > 0; }
};

/// A loss with its terms, means over the places that have a target.
struct TokenLossParts {
  at::Tensor total;  ///< All of it, with gradients.
  /// What the terms add, without gradients; undefined for a term that is 0.
  at::Tensor label_smoothing;
  at::Tensor z_loss;
};

}  // namespace phalanx
