// SPDX-License-Identifier: Apache-2.0
#include "tasks/sequence_to_sequence/sequence_to_sequence.h"

#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

void SequenceToSequence::Config::describe(config::Schema<Config>& s) {
  s.field("data", &Config::data, "the sequences that the model reads and writes");
  s.field("loss", &Config::loss, "how the loss is computed");
}

SequenceToSequence::SequenceToSequence(Config config)
    : config_(std::move(config)), tokenizer_(tokenizer_of(config_.data)) {}

std::unique_ptr<BatchSource> SequenceToSequence::build_data(Phase phase,
                                                            const BatchRequest& request) {
  return open_sequences(config_.data, tokenizer_, phase, vocabulary_size_, request);
}

Loss SequenceToSequence::compute_loss(SequenceToSequenceModel& model,
                                      const SequencePairBatch& batch, const State&) {
  const at::Tensor encoded = model.encode(batch.inputs, batch.mask);
  const at::Tensor outputs = shifted_right(batch.targets, model.decoder_start_token());
  return token_loss(model.decode(outputs, encoded, batch.mask), batch.targets, batch.tokens,
                    config_.loss);
}

void SequenceToSequence::check(const SequenceToSequenceModel& model) const {
  vocabulary_size_ = model.vocabulary_size();
  int64_t needed = tokenizer_.vocabulary_size();
  if (config_.data.span_corruption) {
    needed = std::max(needed, first_sentinel_of(*config_.data.span_corruption, tokenizer_) + 1);
  }
  if (model.vocabulary_size() >= needed) return;
  throw UserError(fmt::format(
      "the model knows {} tokens, but the task sequence_to_sequence needs {}, with {}: raise the "
      "model's vocabulary (t5: model.vocab_size)",
      model.vocabulary_size(), needed,
      config_.data.span_corruption ? "the sentinels of task.data.span_corruption and end-of-text"
                                   : "those of task.data.tokenizer and end-of-text"));
}

NamedValues SequenceToSequence::metrics(const NamedValues& mean_losses) const {
  return {{"perplexity", std::exp(value_of(mean_losses, "loss", std::nan("")))}};
}

at::Tensor shifted_right(const at::Tensor& targets, int64_t start) {
  at::Tensor outputs = at::empty_like(targets);
  const int64_t others = targets.size(1) - 1;
  outputs.narrow(1, 0, 1).fill_(start);
  outputs.narrow(1, 1, others).copy_(targets.narrow(1, 0, others));
  return outputs.masked_fill_(outputs.eq(kNoTarget), 0);
}

REGISTER_TASK("sequence_to_sequence", SequenceToSequence);

}  // namespace phalanx
