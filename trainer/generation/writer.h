// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// A model that writes a batch of texts, one token after the other, as the search for the tokens
/// sees it.
class Writer {
 public:
  virtual ~Writer() = default;

  /// Logits of the first token of each text, [rows, vocabulary]. Called once, first.
  virtual at::Tensor begin() = 0;

  /// Takes the next token of each text (int64 [rows]); returns the logits of the one after it.
  virtual at::Tensor next(const at::Tensor& tokens) = 0;

  /// Keeps these texts, in this order; `rows` is int64, and may name one twice.
  virtual void select(const at::Tensor& rows) = 0;

  /// Calls the model for nothing: what a rank without a text left does while others, which hold
  /// parts of the model, write on. After `begin`.
  virtual void idle() = 0;
};

}  // namespace phalanx
