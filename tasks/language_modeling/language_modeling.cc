// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/language_modeling.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "tasks/language_modeling/generate.h"
#include "tasks/language_modeling/printable.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/source_files.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/token_blocks.h"
#include "trainer/data/token_source.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/tokenizers/byte_tokenizer.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

// A field that names tokens, and what it names.
struct NamedTokens {
  std::string field;
  std::string meaning;  // for messages
  std::shared_ptr<const TokenSet> tokens;
};

NamedTokens open_path(const std::string& field, const std::filesystem::path& path) {
  const auto bytes = [](std::shared_ptr<const MappedFile> file) {
    const auto size = static_cast<int64_t>(file->size());
    return std::make_shared<StoredTokens>(std::move(file), 0, size, TokenType::uint8);
  };
  return {field, fmt::format("the text in '{}'", path.string()), open_files(field, {path}, bytes)};
}

NamedTokens open_source(const std::string& field, const config::Chosen& source) {
  const auto made = Registry<TokenSource>::instance().make(source);
  return {field, fmt::format("the source '{}'", source.name()), made->open(field)};
}

NamedTokens open_tokens(const std::string& path_field,
                        const std::optional<std::filesystem::path>& path,
                        const std::string& source_field,
                        const std::optional<config::Chosen>& source) {
  return source ? open_source(source_field, *source) : open_path(path_field, path.value());
}

// A mistake in it must not come after the training.
void check_prompt(const Tokenizer& tokenizer, const std::string& prompt) {
  try {
    if (!encode(tokenizer, prompt).empty()) return;
  } catch (const UserError& e) {
    throw UserError(fmt::format("task.sample.prompt: {}", e.what()));
  }
  throw UserError("task.sample.prompt has no tokens: give the model a text to go on from");
}

// Throws UserError when `tokens` of a set do not hold one sequence.
void check_length(const std::string& what, const TokenSet& set, int64_t tokens,
                  int64_t sequence_length) {
  if (tokens == 0) throw UserError(what + " is empty");
  const int64_t needed = TokenBlocks::tokens_needed(sequence_length);
  if (tokens >= needed) return;
  const bool are_bytes = set.element() == "bytes";
  throw UserError(fmt::format(
      "{} holds {} {}, but one sequence needs {}: task.data.sequence_length ({}) and the {} "
      "after it; give more text or lower task.data.sequence_length",
      what, tokens, set.element(), needed, sequence_length, are_bytes ? "byte" : "token"));
}

}  // namespace

void TextDataConfig::describe(config::Schema<TextDataConfig>& s) {
  s.field("path", &TextDataConfig::path,
          "the training text, each byte a token: a file, a folder (with all files below it) or a "
          "glob pattern")
      .resume_may_change();  // The data's fingerprint guards its content.
  s.field("source", &TextDataConfig::source, "the training tokens, in place of path")
      .out_of(registered_choice<TokenSource>());
  s.field("validation_path", &TextDataConfig::validation_path,
          "the validation text, as path; null: the end of the training text")
      .resume_may_change();
  s.field("validation_source", &TextDataConfig::validation_source,
          "the validation tokens, as source; null: the end of the training tokens")
      .out_of(registered_choice<TokenSource>());
  s.field(
       "tokenizer", &TextDataConfig::tokenizer,
       "the tokenizer of the source's tokens, a folder or file: checks the model's vocabulary, and "
       "turns the sample into text")
      .resume_may_change();
  s.field(
       "validation_fraction", &TextDataConfig::validation_fraction,
       "share of the training tokens, at the end, kept for validation if there are no others for "
       "it; 0: no validation")
      .at_least(0)
      .less_than(1);
  s.field("sequence_length", &TextDataConfig::sequence_length, "length of a sample")
      .at_least(1)
      .unit("tokens");
  s.field("loader", &TextDataConfig::loader, "how samples are read");
  s.check([](const TextDataConfig& c) -> std::optional<std::string> {
    if (!c.path && !c.source) {
      return "give task.data.path, the training text, or task.data.source, files of tokens";
    }
    if (c.path && c.source) return "path and source both name the training tokens: drop one";
    if (!c.validation_path || !c.validation_source) return std::nullopt;
    return "validation_path and validation_source both name the validation tokens: drop one";
  });
  s.ineffective({"tokenizer"}, "the tokens are the bytes of path",
                [](const TextDataConfig& c) { return c.path.has_value(); });
  s.ineffective({"validation_fraction"}, "the validation tokens are given", [](const auto& c) {
    return c.validation_path.has_value() || c.validation_source.has_value();
  });
}

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
  s.field("sample", &Config::sample, "the text that the model writes at the end of training");
}

LanguageModeling::LanguageModeling(Config config) : config_(std::move(config)) {
  if (are_bytes()) {
    tokenizer_ = std::make_shared<ByteTokenizer>();
  } else if (config_.data.tokenizer) {
    tokenizer_ = load_tokenizer("task.data.tokenizer", *config_.data.tokenizer).tokenizer;
  }
  if (tokenizer_ && config_.sample.tokens > 0) check_prompt(*tokenizer_, config_.sample.prompt);
}

std::unique_ptr<BatchSource> LanguageModeling::build_data(Phase phase,
                                                          const BatchRequest& request) {
  const TextDataConfig& data = config_.data;
  const bool training = phase == Phase::train;
  const bool has_own = data.validation_path || data.validation_source;
  const bool is_own = !training && has_own;
  const double fraction = has_own ? 0.0 : data.validation_fraction;
  if (!training && !is_own && fraction == 0) return nullptr;

  const NamedTokens named =
      is_own ? open_tokens("task.data.validation_path", data.validation_path,
                           "task.data.validation_source", data.validation_source)
             : open_tokens("task.data.path", data.path, "task.data.source", data.source);
  const int64_t tokens = named.tokens->size();
  check_length(fmt::format("{}: {}", named.field, named.meaning), *named.tokens, tokens,
               data.sequence_length);
  const int64_t kept_out = static_cast<int64_t>(fraction * static_cast<double>(tokens));
  const int64_t split = tokens - kept_out;
  const int64_t begin = training || is_own ? 0 : split;
  const int64_t end = training ? split : tokens;
  check_length(
      fmt::format("{}: the {} part (task.data.validation_fraction is {}) of {}", named.field,
                  training ? "training" : "validation", fraction, named.meaning),
      *named.tokens, end - begin, data.sequence_length);
  return load(std::make_shared<TokenBlocks>(named.tokens, begin, end, data.sequence_length,
                                            vocabulary_size_),
              data.loader, request, training);
}

bool LanguageModeling::are_bytes() const {
  return config_.data.path || (config_.data.source && config_.data.source->name() == "bytes");
}

Loss LanguageModeling::compute_loss(CausalLanguageModel& model, const TokenBatch& batch,
                                    const State&) {
  at::Tensor logits = model.logits(batch.inputs);
  // Of numbers with 8 bits a loss would keep two digits (transformers' ForCausalLMLoss).
  if (at::isReducedFloatingType(logits.scalar_type())) logits = logits.to(at::kFloat);
  return at::cross_entropy_loss(logits.flatten(0, 1), batch.targets.flatten());
}

void LanguageModeling::check(const CausalLanguageModel& model) const {
  vocabulary_size_ = model.vocabulary_size();
  if (tokenizer_ && model.vocabulary_size() < tokenizer_->vocabulary_size()) {
    throw UserError(
        fmt::format("the model knows {} tokens, but the task language_modeling reads {} and needs "
                    "{}: raise the "
                    "model's vocabulary (gpt2: model.vocab_size)",
                    model.vocabulary_size(), are_bytes() ? "bytes" : "those of task.data.tokenizer",
                    tokenizer_->vocabulary_size()));
  }
  if (model.context_length() < config_.data.sequence_length) {
    throw UserError(fmt::format(
        "task.data.sequence_length is {}, but the model takes at most {} tokens: lower "
        "task.data.sequence_length or raise the model's context (gpt2: model.n_positions)",
        config_.data.sequence_length, model.context_length()));
  }
}

NamedValues LanguageModeling::metrics(const NamedValues& mean_losses) const {
  const double loss = value_of(mean_losses, "loss", std::nan(""));
  NamedValues found{{"perplexity", std::exp(loss)}};
  if (are_bytes()) found.emplace_back("bits_per_byte", loss / std::numbers::ln2);
  return found;
}

std::string LanguageModeling::show_sample(CausalLanguageModel& model, const State&) {
  const TextSampleConfig& sample = config_.sample;
  if (sample.tokens == 0 || !tokenizer_) return {};
  return printable(generate_text(model, *tokenizer_, sample.prompt, sample.tokens,
                                 sample.temperature, static_cast<uint64_t>(sample.seed)));
}

REGISTER_TASK("language_modeling", LanguageModeling);

}  // namespace phalanx
