// SPDX-License-Identifier: Apache-2.0
#include "tasks/sequence_to_sequence/sequence_data.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/corrupted_spans.h"
#include "trainer/data/held_back.h"
#include "trainer/data/known_tokens.h"
#include "trainer/data/made_with.h"
#include "trainer/data/pairs/sequence_pairs.h"
#include "trainer/data/token_source.h"
#include "trainer/registry/choice.h"
#include "trainer/tokenizers/sentinel_tokens.h"

namespace phalanx {
namespace {

SpanNoise noise_of(const SpanCorruptionConfig& config) {
  return {.density = config.noise_density, .mean_span_length = config.mean_span_length};
}

// The tokens of a phase: validation has the end, unless it has a source.
std::optional<TokenSpan> tokens_of(const SpanCorruptionConfig& config, Phase phase,
                                   const std::optional<ReadWith>& with, std::string& held_back) {
  const bool training = phase == Phase::train;
  const bool has_own = config.validation_source.has_value();
  const HeldBack rule{.fraction = has_own ? 0.0 : config.validation_fraction,
                      .limit = config.validation_limit};
  if (!training && !has_own && rule.fraction == 0) return std::nullopt;
  const bool opens_own = !training && has_own;
  const config::Chosen& source = opens_own ? *config.validation_source : config.source;
  const std::string field =
      std::string("task.data.span_corruption.") + (opens_own ? "validation_source" : "source");
  if (with) require_made_with(field, source, *with);
  auto tokens = Registry<TokenSource>::instance().make(source)->open(field);
  const int64_t size = tokens->size();
  const int64_t split = size - rule.of(size);
  const bool takes_end = !training && !has_own;
  HeldBackSum sum;
  sum.add(rule, size);
  held_back = sum.text(tokens->element(), "task.data.span_corruption.validation_limit");
  return TokenSpan{
      .tokens = std::move(tokens), .begin = takes_end ? split : 0, .end = training ? split : size};
}

// Nothing where no tokenizer is known.
std::optional<ReadWith> read_with(const SequenceDataConfig& config,
                                  const TaskTokenizer& tokenizer) {
  if (!tokenizer.tokenizer) return std::nullopt;
  if (config.tokenizer) {
    return ReadWith{"task.data.tokenizer", *config.tokenizer, *tokenizer.tokenizer};
  }
  return ReadWith{"task.data.span_corruption.source.tokenizer",
                  own_tokenizer_of(config.span_corruption->source), *tokenizer.tokenizer};
}

std::shared_ptr<const Dataset> open_spans(const SequenceDataConfig& config,
                                          const TaskTokenizer& tokenizer, Phase phase,
                                          std::optional<int64_t> vocabulary_size, uint64_t seed,
                                          std::string& held_back) {
  auto span = tokens_of(*config.span_corruption, phase, read_with(config, tokenizer), held_back);
  if (!span) return nullptr;
  const SpanNoise noise = noise_of(*config.span_corruption);
  const int64_t needed = corruption_lengths(config.input_length, noise).tokens;
  const int64_t found = span->end - span->begin;
  if (found < needed) {
    throw UserError(fmt::format(
        "task.data.span_corruption: there are {} {} for {}, but a sample takes {} "
        "(task.data.input_length is {}): give more text, lower input_length{}",
        found, span->tokens->element(), use_of_pairs(phase, {}), needed, config.input_length,
        phase == Phase::validate ? ", or raise validation_fraction and validation_limit" : ""));
  }
  const CorruptedSpans::Options options{
      .input_length = config.input_length,
      .noise = noise,
      .first_sentinel = first_sentinel_of(*config.span_corruption, tokenizer),
      .end_of_text = tokenizer.end_of_text,
      .vocabulary_size = vocabulary_size};
  return std::make_shared<CorruptedSpans>(std::vector{std::move(*span)}, options, seed);
}

std::shared_ptr<const Dataset> open_samples(const SequenceDataConfig& config,
                                            const TaskTokenizer& tokenizer, Phase phase,
                                            const BatchRequest& request, std::string& held_back) {
  auto [pairs, of_pairs] =
      open_pairs(*config.pairs, phase, tokenizer_of_pairs(*config.pairs, tokenizer));
  held_back = std::move(of_pairs);
  if (!pairs) return nullptr;
  const SequencePairs::Options options{.input_length = config.input_length,
                                       .target_length = config.target_length,
                                       .end_of_text = tokenizer.end_of_text};
  auto samples = std::make_shared<SequencePairs>(std::move(pairs), options);
  const CutPairs cut = look_at_pairs(*samples, config.loader.max_broken > 0);
  if (cut.cut > 0 && request.rank == 0) {
    fmt::print(stderr,
               "warning: of {} pairs looked at for {}, {} are cut to {} tokens of input and {} of "
               "target (task.data.input_length, task.data.target_length)\n",
               cut.looked_at, use_of_pairs(phase, request.files), cut.cut, config.input_length,
               config.target_length);
  }
  return samples;
}

std::optional<std::string> mistake_in_spans(const SequenceDataConfig& c) {
  const SpanNoise noise = noise_of(*c.span_corruption);
  const int64_t tokens = corruption_lengths(c.input_length, noise).tokens;
  const int64_t spans = noise_spans(tokens, noise);
  if (spans <= c.span_corruption->sentinels) return std::nullopt;
  return fmt::format(
      "an input of {} tokens has {} spans of noise, but there are {} sentinels: lower input_length "
      "or noise_density, or raise mean_span_length or sentinels",
      c.input_length, spans, c.span_corruption->sentinels);
}

}  // namespace

void SpanCorruptionConfig::describe(config::Schema<SpanCorruptionConfig>& s) {
  s.field("source", &SpanCorruptionConfig::source, "the training tokens")
      .mandatory()
      .out_of(registered_choice<TokenSource>());
  s.field("validation_source", &SpanCorruptionConfig::validation_source,
          "the validation tokens; null: the end of the training tokens")
      .out_of(registered_choice<TokenSource>());
  s.field(
       "validation_fraction", &SpanCorruptionConfig::validation_fraction,
       "share of the training tokens, at the end, kept for validation if there are no others for "
       "it; 0: no validation")
      .at_least(0)
      .less_than(1);
  s.field("validation_limit", &SpanCorruptionConfig::validation_limit,
          "no more than this is kept by validation_fraction; null: no limit")
      .count()
      .at_least(1)
      .unit("tokens")
      .older_runs_have_none();
  s.field("noise_density", &SpanCorruptionConfig::noise_density, "share of the tokens in spans")
      .greater_than(0)
      .at_most(0.5);
  s.field("mean_span_length", &SpanCorruptionConfig::mean_span_length, "of the spans")
      .at_least(1)
      .unit("tokens");
  s.field("first_sentinel", &SpanCorruptionConfig::first_sentinel,
          "the token that stands for the first span (T5's <extra_id_0>); the next ones go down; "
          "null: the last of the sentinels behind the tokenizer's tokens")
      .in_range(1, kLargestToken);
  s.field("sentinels", &SpanCorruptionConfig::sentinels, "how many there are")
      .in_range(1, kLargestToken)
      .unit("tokens");
  s.ineffective({"validation_fraction", "validation_limit"}, "the validation tokens are given",
                [](const auto& c) { return c.validation_source.has_value(); });
  s.ineffective({"validation_limit"}, "validation_fraction is 0",
                [](const auto& c) { return c.validation_fraction == 0; });
  s.check([](const SpanCorruptionConfig& c) -> std::optional<std::string> {
    if (!c.first_sentinel || *c.first_sentinel >= c.sentinels) return std::nullopt;
    return "first_sentinel must be at least sentinels, as they go down from it";
  });
}

void SequenceDataConfig::describe(config::Schema<SequenceDataConfig>& s) {
  s.field("pairs", &SequenceDataConfig::pairs, "pairs of texts: summaries, translations");
  s.field("span_corruption", &SequenceDataConfig::span_corruption,
          "tokens of which the model writes spans that are left out, as T5 learns; in place of "
          "pairs");
  s.field("tokenizer", &SequenceDataConfig::tokenizer,
          "the tokenizer, a folder or file, or bytes (docs/data.md); null: the source's")
      .resume_may_change();
  s.field("end_of_text", &SequenceDataConfig::end_of_text,
          "the token that ends each sequence; null: the tokenizer's")
      .in_range(0, kLargestToken);
  s.field("input_length", &SequenceDataConfig::input_length,
          "the longest input, with its end-of-text token")
      .at_least(4)
      .at_most(1 << 20)
      .unit("tokens");
  s.field("target_length", &SequenceDataConfig::target_length,
          "the longest target of a pair, with its end-of-text token")
      .at_least(1)
      .at_most(1 << 20)
      .unit("tokens");
  s.field("loader", &SequenceDataConfig::loader, "how samples are read");
  s.check([](const SequenceDataConfig& c) -> std::optional<std::string> {
    if (c.pairs && c.span_corruption) return "pairs and span_corruption both name data: drop one";
    if (!c.pairs && !c.span_corruption) return "give task.data.pairs or task.data.span_corruption";
    if (c.pairs && !c.tokenizer) return "pairs of texts need task.data.tokenizer";
    return c.span_corruption ? mistake_in_spans(c) : std::nullopt;
  });
  s.ineffective({"target_length", "loader.sort_window"},
                "spans and input_length decide the length of a target",
                [](const SequenceDataConfig& c) { return c.span_corruption.has_value(); });
}

TaskTokenizer tokenizer_of(const SequenceDataConfig& config) {
  std::optional<LoadedTokenizer> loaded;
  if (config.tokenizer) {
    loaded = load_tokenizer("task.data.tokenizer", *config.tokenizer);
  } else if (config.span_corruption) {
    loaded = Registry<TokenSource>::instance()
                 .make(config.span_corruption->source)
                 ->tokenizer("task.data.span_corruption.source");
  }
  return task_tokenizer(std::move(loaded), config.end_of_text);
}

std::shared_ptr<const Tokenizer> tokenizer_of_pairs(const PairsConfig& config,
                                                    const TaskTokenizer& tokenizer) {
  if (!config.special_tokens || !tokenizer.tokenizer) return tokenizer.tokenizer;
  return with_sentinels(tokenizer.tokenizer, first_sentinel_behind(*tokenizer.tokenizer),
                        kT5Sentinels, SentinelTexts::as_special);
}

int64_t first_sentinel_of(const SpanCorruptionConfig& config, const TaskTokenizer& tokenizer) {
  if (config.first_sentinel) return *config.first_sentinel;
  if (tokenizer.tokenizer) return first_sentinel_behind(*tokenizer.tokenizer, config.sentinels);
  throw UserError(
      "task.data.span_corruption.first_sentinel: without task.data.tokenizer nothing says which "
      "tokens are the sentinels: give one of them (T5: 32099)");
}

Sequences open_sequences(const SequenceDataConfig& config, const TaskTokenizer& tokenizer,
                         Phase phase, std::optional<int64_t> vocabulary_size,
                         const BatchRequest& request) {
  Sequences opened;
  auto samples = config.pairs ? open_samples(config, tokenizer, phase, request, opened.held_back)
                              : open_spans(config, tokenizer, phase, vocabulary_size, request.seed,
                                           opened.held_back);
  if (!samples) return {};
  if (vocabulary_size) samples = known_tokens(std::move(samples), *vocabulary_size);
  opened.batches = load(std::move(samples), config.loader, request, phase == Phase::train);
  return opened;
}

}  // namespace phalanx
