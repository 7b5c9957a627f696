// SPDX-License-Identifier: Apache-2.0
#include "tasks/sequence_to_sequence/sequence_to_sequence.h"

#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "tasks/sequence_to_sequence/input_sequences.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/dataset_predictions.h"
#include "trainer/data/known_tokens.h"
#include "trainer/data/token_source.h"
#include "trainer/generation/any_rank.h"
#include "trainer/generation/generate_texts.h"
#include "trainer/generation/text_results.h"
#include "trainer/registry/kinds.h"
#include "trainer/tokenizers/sentinel_tokens.h"

namespace phalanx {
namespace {

// The tokens of each row, without its padding.
std::vector<GenerationInput> inputs_of(const SequencePairBatch& batch) {
  const at::Tensor inputs = batch.inputs.to(at::kCPU).contiguous();
  const std::vector<int64_t>& numbers = batch.sample_numbers;
  std::vector<GenerationInput> rows;
  for (int64_t row = 0; row < inputs.size(0); ++row) {
    const int64_t length =
        batch.mask.defined() ? batch.mask[row].sum().item<int64_t>() : inputs.size(1);
    const auto* first = inputs.const_data_ptr<int64_t>() + row * inputs.size(1);
    const int64_t number = numbers.empty() ? row : numbers[static_cast<size_t>(row)];
    rows.push_back({.tokens = {first, first + length}, .number = number});
  }
  return rows;
}

// The tokens of a row's target, without what ends it.
std::vector<int32_t> target_of(const SequencePairBatch& batch, size_t row) {
  const at::Tensor targets = batch.targets[static_cast<int64_t>(row)].to(at::kCPU).contiguous();
  const auto* first = targets.const_data_ptr<int64_t>();
  const int64_t length = targets.ne(kNoTarget).sum().item<int64_t>();
  return {first, first + std::max<int64_t>(length - 1, 0)};
}

// As people write and read texts: with the sentinels. Pairs are read as in training.
std::shared_ptr<const Tokenizer> tokenizer_of_texts(const SequenceDataConfig& data,
                                                    const TaskTokenizer& tokenizer) {
  if (data.pairs) return tokenizer_of_pairs(*data.pairs, tokenizer);
  if (!tokenizer.tokenizer) return nullptr;
  const SpanCorruptionConfig& spans = *data.span_corruption;
  return with_sentinels(tokenizer.tokenizer, first_sentinel_of(spans, tokenizer), spans.sentinels);
}

}  // namespace

void SequenceToSequence::Config::describe(config::Schema<Config>& s) {
  s.field("data", &Config::data, "the sequences that the model reads and writes");
  s.field("loss", &Config::loss, "how the loss is computed");
  s.field("generation", &Config::generation, "how predictions are written");
}

SequenceToSequence::SequenceToSequence(Config config)
    : config_(std::move(config)),
      tokenizer_(tokenizer_of(config_.data)),
      tokenizer_of_texts_(tokenizer_of_texts(config_.data, tokenizer_)) {}

std::unique_ptr<BatchSource> SequenceToSequence::build_data(Phase phase,
                                                            const BatchRequest& request) {
  SequenceDataConfig data = config_.data;
  if (data.pairs) {
    data.pairs = with_validation_files(*data.pairs, request.files);
  } else if (!request.files.empty()) {
    SpanCorruptionConfig& spans = *data.span_corruption;
    spans.validation_source = with_files(
        spans.validation_source ? *spans.validation_source : spans.source, request.files);
  }
  ranks_ = request.ranks;
  Sequences opened = open_sequences(data, tokenizer_, phase, vocabulary_size_, request);
  held_back_ = std::move(opened.held_back);
  return std::move(opened.batches);
}

Loss SequenceToSequence::compute_loss(SequenceToSequenceModel& model,
                                      const SequencePairBatch& batch, const State& state) {
  const TokenLossConfig loss =
      state.phase == Phase::train ? config_.loss : config_.loss.without_terms();
  const at::Tensor encoded = model.encode(batch.inputs, batch.mask);
  const at::Tensor outputs = shifted_right(batch.targets, model.decoder_start_token());
  return token_losses(model.decode(outputs, encoded, batch.mask), batch.targets, batch.tokens,
                      loss);
}

void SequenceToSequence::adapt_to(const SequenceToSequenceModel& model) {
  vocabulary_size_ = model.vocabulary_size();
}

void SequenceToSequence::check(const SequenceToSequenceModel& model) const {
  int64_t needed = tokenizer_.vocabulary_size();
  if (config_.data.span_corruption) {
    needed = std::max(needed, first_sentinel_of(*config_.data.span_corruption, tokenizer_) + 1);
  }
  if (model.vocabulary_size() >= needed) return;
  throw UserError(fmt::format(
      "the model knows {} tokens, but the task sequence_to_sequence needs {}, with {}: raise the "
      "model's vocabulary (model.vocab_size), or, where its weights come from "
      "checkpoint.load_from, take the tokens of that model",
      model.vocabulary_size(), needed,
      config_.data.span_corruption ? "the sentinels of task.data.span_corruption (first_sentinel, "
                                     "sentinels) and task.data.end_of_text"
                                   : "those of task.data.tokenizer and task.data.end_of_text"));
}

NamedValues SequenceToSequence::metrics(const NamedValues& mean_losses) const {
  return {{"perplexity", std::exp(value_of(mean_losses, "loss", std::nan("")))}};
}

TaskText SequenceToSequence::text() const {
  TaskTokenizer read = tokenizer_;
  read.tokenizer = tokenizer_of_texts_;
  return read.text(config_.data.pairs && config_.data.pairs->special_tokens);
}

std::unique_ptr<PredictionSource> SequenceToSequence::prediction_data(
    const PredictionInput& input) {
  if (!tokenizer_.tokenizer) {
    throw UserError(
        "task.data.tokenizer is null: predictions are made of texts; name the tokenizer that the "
        "model's tokens are of");
  }
  ranks_ = input.ranks;
  std::shared_ptr<const Dataset> texts = std::make_shared<InputSequences>(
      InputTexts(input.files, tokenizer_of_texts_, config_.data.pairs),
      InputSequences::Options{.input_length = config_.data.input_length,
                              .end_of_text = tokenizer_.end_of_text});
  if (vocabulary_size_) texts = known_tokens(std::move(texts), *vocabulary_size_);
  return predictions_of(std::move(texts));
}

std::vector<GeneratedText> SequenceToSequence::write_texts(SequenceToSequenceModel& model,
                                                           const SequencePairBatch& batch,
                                                           const Tokenizer* tokenizer) const {
  const TextModel writer{
      .model = &model, .tokenizer = tokenizer, .end_of_text = {tokenizer_.end_of_text}};
  const TextHooks hooks{.any_rank = any_rank_of(ranks_)};
  return generate_texts(writer, inputs_of(batch), config_.generation, hooks);
}

Predictions SequenceToSequence::predict(SequenceToSequenceModel& model,
                                        const SequencePairBatch& batch, const State&) {
  Predictions predictions;
  for (const GeneratedText& text : write_texts(model, batch, tokenizer_of_texts_.get())) {
    predictions.push_back(prediction_of(text));
  }
  return predictions;
}

std::vector<NamedValues> SequenceToSequence::score_texts(SequenceToSequenceModel& model,
                                                         const SequencePairBatch& batch,
                                                         const State&) {
  if (!tokenizer_.tokenizer) return {};
  const Tokenizer& tokenizer = config_.data.pairs ? *tokenizer_of_texts_ : *tokenizer_.tokenizer;
  const std::vector<GeneratedText> texts = write_texts(model, batch, &tokenizer);
  std::vector<NamedValues> scores;
  for (size_t row = 0; row < texts.size(); ++row) {
    const std::string target = decode(tokenizer, target_of(batch, row));
    scores.push_back(scores_of(texts[row].text, target));
  }
  return scores;
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
