// SPDX-License-Identifier: Apache-2.0
#include "tasks/instruction_tuning/instruction_tuning.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/dataset_predictions.h"
#include "trainer/data/known_tokens.h"
#include "trainer/data/pairs/answer_samples.h"
#include "trainer/generation/any_rank.h"
#include "trainer/generation/text_results.h"
#include "trainer/registry/kinds.h"

namespace phalanx {

void InstructionDataConfig::describe(config::Schema<InstructionDataConfig>& s) {
  s.field("pairs", &InstructionDataConfig::pairs, "the prompts (input) and their answers (target)");
  s.field("tokenizer", &InstructionDataConfig::tokenizer,
          "the tokenizer, a folder or file, or bytes (docs/data.md)")
      .mandatory()
      .resume_may_change();
  s.field("end_of_text", &InstructionDataConfig::end_of_text,
          "the token that ends each answer; null: the tokenizer's")
      .in_range(0, kLargestToken);
  s.field("sequence_length", &InstructionDataConfig::sequence_length,
          "the longest prompt with its answer; the end of a longer one is cut off")
      .at_least(1)
      .at_most(1 << 20)
      .unit("tokens");
  s.field("loader", &InstructionDataConfig::loader, "how samples are read");
}

void InstructionTuning::Config::describe(config::Schema<Config>& s) {
  s.field("data", &Config::data, "the prompts and answers");
  s.field("loss", &Config::loss, "how the loss is computed");
  s.field("generation", &Config::generation, "how answers are written");
}

InstructionTuning::InstructionTuning(Config config)
    : config_(std::move(config)),
      tokenizer_(task_tokenizer(load_tokenizer("task.data.tokenizer", config_.data.tokenizer),
                                config_.data.end_of_text)) {}

std::unique_ptr<BatchSource> InstructionTuning::build_data(Phase phase,
                                                           const BatchRequest& request) {
  ranks_ = request.ranks;
  const PairsConfig config = with_validation_files(config_.data.pairs, request.files);
  auto [pairs, held_back] = open_pairs(config, phase, tokenizer_.tokenizer);
  held_back_ = std::move(held_back);
  if (!pairs) return nullptr;
  const AnswerSamples::Options options{.sequence_length = config_.data.sequence_length,
                                       .end_of_text = tokenizer_.end_of_text};
  auto samples = std::make_shared<AnswerSamples>(std::move(pairs), options);
  const CutPairs cut = look_at_pairs(*samples, config_.data.loader.max_broken > 0);
  if (cut.cut > 0 && request.rank == 0) {
    fmt::print(stderr,
               "warning: of {} pairs looked at for {}, {} are cut to {} tokens "
               "(task.data.sequence_length)\n",
               cut.looked_at, use_of_pairs(phase, request.files), cut.cut,
               config_.data.sequence_length);
  }
  return load(known(std::move(samples)), config_.data.loader, request, phase == Phase::train);
}

Loss InstructionTuning::compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                                     const State& state) {
  const TokenLossConfig loss =
      state.phase == Phase::train ? config_.loss : config_.loss.without_terms();
  if (const auto hidden = model.hidden_states(batch.inputs, {})) {
    return token_losses(*hidden, batch.targets, batch.tokens, loss);
  }
  return token_losses(model.logits(batch.inputs), batch.targets, batch.tokens, loss);
}

// Samples of which no token is beyond the model's vocabulary.
std::shared_ptr<const Dataset> InstructionTuning::known(
    std::shared_ptr<const Dataset> samples) const {
  return vocabulary_size_ ? known_tokens(std::move(samples), *vocabulary_size_)
                          : std::move(samples);
}

void InstructionTuning::adapt_to(const CausalLanguageModel& model) {
  vocabulary_size_ = model.vocabulary_size();
}

void InstructionTuning::check(const CausalLanguageModel& model) const {
  if (model.vocabulary_size() < tokenizer_.vocabulary_size()) {
    throw UserError(fmt::format(
        "the model knows {} tokens, but the task instruction_tuning needs {}, those of "
        "task.data.tokenizer and task.data.end_of_text: raise the model's vocabulary "
        "(model.vocab_size), or, where its weights come from checkpoint.load_from, take the "
        "tokenizer and the end_of_text of that model",
        model.vocabulary_size(), tokenizer_.vocabulary_size()));
  }
  if (model.context_length() < config_.data.sequence_length) {
    throw UserError(
        fmt::format("task.data.sequence_length is {}, but the model takes at most {} tokens: lower "
                    "task.data.sequence_length, or raise the model's context (llama: "
                    "model.max_position_embeddings; gpt2: model.n_positions, unless its weights "
                    "come from checkpoint.load_from)",
                    config_.data.sequence_length, model.context_length()));
  }
}

NamedValues InstructionTuning::metrics(const NamedValues& mean_losses) const {
  return {{"perplexity", std::exp(value_of(mean_losses, "loss", std::nan("")))}};
}

std::unique_ptr<PredictionSource> InstructionTuning::prediction_data(const PredictionInput& input) {
  ranks_ = input.ranks;
  return predictions_of(known(
      std::make_shared<Prompts>(InputTexts(input.files, tokenizer_.tokenizer, config_.data.pairs),
                                Prompts::Options{.sequence_length = config_.data.sequence_length,
                                                 .end_of_text = tokenizer_.end_of_text})));
}

std::vector<GeneratedText> InstructionTuning::answers(
    CausalLanguageModel& model, const std::vector<PromptAndAnswer>& samples) const {
  std::vector<GenerationInput> prompts;
  for (const PromptAndAnswer& sample : samples) prompts.push_back(sample.prompt);
  const TextModel writer{.model = &model,
                         .tokenizer = tokenizer_.tokenizer.get(),
                         .end_of_text = {tokenizer_.end_of_text}};
  return generate_texts(writer, prompts, config_.generation, {.any_rank = any_rank_of(ranks_)});
}

Predictions InstructionTuning::predict(CausalLanguageModel& model, const TokenBatch& batch,
                                       const State&) {
  Predictions predictions;
  for (const auto& text : answers(model, prompts_and_answers(batch, tokenizer_.end_of_text))) {
    predictions.push_back(prediction_of(text));
  }
  return predictions;
}

std::vector<NamedValues> InstructionTuning::score_texts(CausalLanguageModel& model,
                                                        const TokenBatch& batch, const State&) {
  const std::vector<PromptAndAnswer> samples = prompts_and_answers(batch, tokenizer_.end_of_text);
  const std::vector<GeneratedText> texts = answers(model, samples);
  std::vector<NamedValues> scores;
  for (size_t i = 0; i < texts.size(); ++i) {
    scores.push_back(scores_of(texts[i].text, decode(*tokenizer_.tokenizer, samples[i].answer)));
  }
  return scores;
}

REGISTER_TASK("instruction_tuning", InstructionTuning);

}  // namespace phalanx
