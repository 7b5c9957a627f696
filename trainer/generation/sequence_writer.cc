// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/sequence_writer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

namespace phalanx {

SequenceWriter::SequenceWriter(SequenceToSequenceModel& model, const at::Tensor& inputs,
                               const at::Tensor& mask, bool use_cache)
    : model_(model),
      use_cache_(use_cache),
      encoded_(model.encode(inputs, mask)),
      mask_(mask),
      outputs_(at::full({inputs.size(0), 1}, model.decoder_start_token(), at::kLong)) {}

at::Tensor SequenceWriter::begin() { return read(); }

at::Tensor SequenceWriter::next(const at::Tensor& tokens) {
  outputs_ = at::cat({outputs_, tokens.unsqueeze(1)}, 1);
  return read();
}

void SequenceWriter::select(const at::Tensor& rows) {
  outputs_ = outputs_.index_select(0, rows);
  encoded_ = encoded_.index_select(0, rows.to(encoded_.device()));
  if (mask_.defined()) mask_ = mask_.index_select(0, rows.to(mask_.device()));
  cache_.select(rows);
}

void SequenceWriter::idle() {
  const at::Tensor mask = mask_.defined() ? mask_.narrow(0, 0, 1) : mask_;
  model_.decode(outputs_.narrow(0, 0, 1).narrow(1, 0, 1), encoded_.narrow(0, 0, 1), mask);
}

at::Tensor SequenceWriter::read() {
  if (use_cache_) {
    const at::Tensor last = outputs_.narrow(1, outputs_.size(1) - 1, 1);
    if (const auto hidden = model_.next_states(last, encoded_, mask_, cache_)) {
      return last_logits_of(*hidden);
    }
    use_cache_ = false;  // This model has none.
  }
  return last_logits_of(model_.decode(outputs_, encoded_, mask_));
}

}  // namespace phalanx
