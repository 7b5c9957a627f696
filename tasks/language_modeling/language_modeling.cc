// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/language_modeling.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "tasks/language_modeling/bytes_per_token.h"
#include "tasks/language_modeling/document_lines.h"
#include "tasks/language_modeling/document_scores.h"
#include "tasks/language_modeling/generate.h"
#include "tasks/language_modeling/printable.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/dataset_predictions.h"
#include "trainer/data/known_tokens.h"
#include "trainer/registry/kinds.h"
#include "trainer/tokenizers/byte_tokenizer.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

// A mistake in it must not come after the training.
void check_prompt(const Tokenizer& tokenizer, const std::string& prompt) {
  if (prompt == TextSampleConfig::kDefaultPrompt) return;  // Nobody has chosen it.
  try {
    if (!encode(tokenizer, prompt).empty()) return;
  } catch (const UserError& e) {
    throw UserError(fmt::format("task.sample.prompt: {}", e.what()));
  }
  throw UserError("task.sample.prompt has no tokens: give the model a text to go on from");
}

bool has_tokens_of(const Tokenizer& tokenizer, const std::string& text) {
  try {
    return !encode(tokenizer, text).empty();
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

void TextSampleConfig::describe(config::Schema<TextSampleConfig>& s) {
  s.field("prompt", &TextSampleConfig::prompt, "how the text begins").resume_may_change();
  s.field("tokens", &TextSampleConfig::tokens, "how many follow; 0: no sample")
      .at_least(0)
      .unit("tokens")
      .resume_may_change();
  s.field("temperature", &TextSampleConfig::temperature,
          "below 1 prefers what is likely; 0 takes the likeliest")
      .at_least(0)
      .resume_may_change();
  s.field("seed", &TextSampleConfig::seed, "of the draws").at_least(0).resume_may_change();
  s.check([](const TextSampleConfig& c) -> std::optional<std::string> {
    if (!c.prompt.empty() || c.tokens == 0) return std::nullopt;
    return "prompt must hold at least one byte for the model to go on from";
  });
  s.ineffective({"prompt", "temperature", "seed"}, "tokens is 0",
                [](const TextSampleConfig& c) { return c.tokens == 0; });
  s.ineffective({"seed"}, "temperature is 0, so that nothing is drawn",
                [](const TextSampleConfig& c) { return c.temperature == 0; });
}

void LanguageModeling::Config::describe(config::Schema<Config>& s) {
  s.field("data", &Config::data, "the text and how it is cut into samples");
  s.field("loss", &Config::loss, "how the loss is computed");
  s.field("sample", &Config::sample,
          "the text that the model writes at the end of training; null: none");
  s.ineffective({"sample"}, "there is no tokenizer, so no text is written: set task.data.tokenizer",
                [](const Config& c) { return !c.data.names_tokenizer(); });
}

LanguageModeling::LanguageModeling(Config config) : config_(std::move(config)) {
  if (config_.data.are_bytes()) {
    tokenizer_ = std::make_shared<ByteTokenizer>();
    tokenizer_field_ = config_.data.path ? "that of task.data.path" : "that of task.data.source";
    tokenizer_name_ = "bytes";
    bytes_per_token_ = 1;
  } else if (config_.data.tokenizer) {
    take(load_tokenizer("task.data.tokenizer", *config_.data.tokenizer));
    tokenizer_field_ = "task.data.tokenizer";
    tokenizer_name_ = *config_.data.tokenizer;
  }
  if (!tokenizer_ && config_.data.source) {
    if (auto tokenizer = tokenizer_of_source(config_.data)) {
      take(std::move(*tokenizer));
      tokenizer_field_ = "task.data.source.tokenizer";
      tokenizer_name_ = own_tokenizer_of(*config_.data.source);
    }
  }
  if (tokenizer_ && config_.sample && config_.sample->tokens > 0) {
    check_prompt(*tokenizer_, config_.sample->prompt);
  }
}

void LanguageModeling::take(LoadedTokenizer tokenizer) {
  tokenizer_ = std::move(tokenizer.tokenizer);
  for (auto& [name, content] : tokenizer.files) {
    attachments_.push_back({.name = std::move(name), .content = std::move(content)});
  }
}

std::unique_ptr<BatchSource> LanguageModeling::build_data(Phase phase,
                                                          const BatchRequest& request) {
  const TextDataConfig data = with_validation_files(config_.data, request.files);
  if (tokenizer_) require_tokenizer(data, phase, {tokenizer_field_, tokenizer_name_, *tokenizer_});
  auto [samples, held_back] = open_samples(data, phase, vocabulary_size_);
  held_back_ = std::move(held_back);
  if (!samples) return nullptr;
  if (phase == Phase::validate && tokenizer_ && !config_.data.are_bytes()) {
    bytes_per_token_ = bytes_per_token(*samples, *tokenizer_);
  }
  return load(std::move(samples), config_.data.loader, request, phase == Phase::train);
}

Loss LanguageModeling::compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                                    const State& state) {
  const TokenLossConfig loss =
      state.phase == Phase::train ? config_.loss : config_.loss.without_terms();
  if (const auto hidden = model.hidden_states(batch.inputs, batch.positions)) {
    return token_losses(*hidden, batch.targets, batch.tokens, loss);
  }
  const at::Tensor logits = batch.positions.defined()
                                ? model.logits_by_document(batch.inputs, batch.positions)
                                : model.logits(batch.inputs);
  return token_losses(logits, batch.targets, batch.tokens, loss);
}

void LanguageModeling::adapt_to(const CausalLanguageModel& model) {
  vocabulary_size_ = model.vocabulary_size();
  context_length_ = model.context_length();
}

void LanguageModeling::check(const CausalLanguageModel& model) const {
  if (tokenizer_ && model.vocabulary_size() < tokenizer_->vocabulary_size()) {
    throw UserError(fmt::format(
        "the model knows {} tokens (model.vocab_size), but {} {}: set model.vocab_size={} or more; "
        "a model that is trained already, as one of checkpoint.load_from, takes the tokenizer that "
        "it was trained with",
        model.vocabulary_size(),
        config_.data.are_bytes()
            ? fmt::format("{} reads bytes, of which there are",
                          config_.data.path ? "task.data.path" : "task.data.source")
            : fmt::format("the tokenizer '{}' ({}) has", tokenizer_name_.string(),
                          tokenizer_field_),
        tokenizer_->vocabulary_size(), tokenizer_->vocabulary_size()));
  }
  if (config_.data.documents == Documents::separated && !model.separates_documents()) {
    throw UserError(
        "task.data.documents is separated, but this model does not keep documents apart in a "
        "sequence: set it to joined or padded (a model does by separates_documents, "
        "models/interfaces/causal_language_model.h)");
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

NamedValues LanguageModeling::metrics(const NamedValues& mean_losses) const {
  const double loss = value_of(mean_losses, "loss", std::nan(""));
  NamedValues found{{"perplexity", std::exp(loss)}};
  if (bytes_per_token_ > 0) {
    found.emplace_back("bits_per_byte", loss / std::numbers::ln2 / bytes_per_token_);
  }
  return found;
}

std::string LanguageModeling::show_sample(CausalLanguageModel& model, const State&) {
  if (!config_.sample || config_.sample->tokens == 0 || !tokenizer_) return {};
  const TextSampleConfig& sample = *config_.sample;
  if (!has_tokens_of(*tokenizer_, sample.prompt)) {
    throw NoSample(
        "the tokenizer has no tokens for the default of task.sample.prompt, a line end: set it to "
        "a text that the model can go on from");
  }
  return printable(generate_text(model, *tokenizer_, sample.prompt, sample.tokens,
                                 sample.temperature, static_cast<uint64_t>(sample.seed)));
}

std::unique_ptr<PredictionSource> LanguageModeling::prediction_data(const PredictionInput& input) {
  if (!tokenizer_) {
    throw UserError(
        "task.data.tokenizer is null: predictions are made of texts; name the tokenizer that the "
        "model's tokens are of");
  }
  std::shared_ptr<const Dataset> documents = std::make_shared<DocumentLines>(
      input.files, tokenizer_,
      DocumentLines::Options{.context_length = context_length_,
                             .any_bytes = config_.data.bytes_of_files()});
  if (vocabulary_size_) documents = known_tokens(std::move(documents), *vocabulary_size_);
  return predictions_of(std::move(documents));
}

Predictions LanguageModeling::predict(CausalLanguageModel& model, const TokenBatch& batch,
                                      const State&) {
  return document_scores(model, batch);
}

TaskText LanguageModeling::text() const {
  std::optional<int64_t> end;
  if (tokenizer_) end = tokenizer_->end_of_text();
  if (!end) {
    end = end_of_text_of_source(config_.data);
    // A default that the tokens do not have.
    if (end && vocabulary_size_ && *end >= *vocabulary_size_) end.reset();
  }
  return {.tokenizer = tokenizer_, .end_of_text = end};
}

REGISTER_TASK("language_modeling", LanguageModeling);

}  // namespace phalanx
