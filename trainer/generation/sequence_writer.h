// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "models/interfaces/decoder_cache.h"
#include "models/interfaces/sequence_to_sequence_model.h"
#include "trainer/generation/writer.h"

namespace phalanx {

/// Writes a sequence for each that the model has read.
class SequenceWriter final : public Writer {
 public:
  /// Reads `inputs` (int64 [rows, input length]); `mask` (bool, the same shape) is false at
  /// padding, or undefined. Without `use_cache` the model reads all that it has written for each
  /// token.
  SequenceWriter(SequenceToSequenceModel& model, const at::Tensor& inputs, const at::Tensor& mask,
                 bool use_cache);

  at::Tensor begin() override;
  at::Tensor next(const at::Tensor& tokens) override;
  void select(const at::Tensor& rows) override;
  void idle() override;

 private:
  at::Tensor read();

  SequenceToSequenceModel& model_;
  bool use_cache_;
  at::Tensor encoded_;
  at::Tensor mask_;
  at::Tensor outputs_;  // int64 [rows, written], the decoder's start token first.
  DecoderCache cache_;
};

}  // namespace phalanx
