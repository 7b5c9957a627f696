// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "models/interfaces/decoder_cache.h"
#include "models/interfaces/hidden_states.h"

namespace phalanx {

/// A model that reads one sequence and writes another: an encoder and a decoder (Sutskever et al.
/// 2014; T5, Raffel et al. 2020).
class SequenceToSequenceModel {
 public:
  static constexpr std::string_view kInterface = "SequenceToSequenceModel";

  virtual ~SequenceToSequenceModel() = default;

  /// What the decoder sees of the inputs, [batch, input length, width] on the model's device, for
  /// token ids [batch, input length] (int64). `mask` (bool, the same shape) is false at padding,
  /// or undefined: there is none.
  virtual at::Tensor encode(const at::Tensor& inputs, const at::Tensor& mask) = 0;

  /// For each place the states that predict the token after it. `outputs` (int64 [batch, output
  /// length]) are the tokens written so far, `decoder_start_token` first; `encoded` and `mask` are
  /// the result and the mask of `encode`.
  virtual HiddenStates decode(const at::Tensor& outputs, const at::Tensor& encoded,
                              const at::Tensor& mask) = 0;

  /// The same of outputs that go on from those in `cache`, which takes them in, too: what a text is
  /// written with. Optional; nothing, and the cache as it was, for a model that keeps none.
  virtual std::optional<HiddenStates> next_states(const at::Tensor& /*outputs*/,
                                                  const at::Tensor& /*encoded*/,
                                                  const at::Tensor& /*mask*/,
                                                  DecoderCache& /*cache*/) {
    return std::nullopt;
  }

  /// Number of different tokens.
  virtual int64_t vocabulary_size() const = 0;

  /// The token that the decoder begins with.
  virtual int64_t decoder_start_token() const = 0;
};

}  // namespace phalanx
