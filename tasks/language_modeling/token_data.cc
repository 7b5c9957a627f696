// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/token_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/data_file.h"
#include "trainer/data/document_samples.h"
#include "trainer/data/held_back.h"
#include "trainer/data/mixture.h"
#include "trainer/data/source_files.h"
#include "trainer/data/token_blocks.h"
#include "trainer/data/token_source.h"
#include "trainer/data/tokens_of_files.h"
#include "trainer/registry/choice.h"

namespace phalanx {
namespace {

// A field that names tokens, and what it names.
struct NamedTokens {
  std::string field;
  std::string meaning;  // for messages
  std::shared_ptr<const TokenSet> tokens;
};

NamedTokens open_path(const std::string& field, const std::filesystem::path& path,
                      const AnyBytes& any_bytes) {
  const FileList files = files_of(field, {path});
  try {
    require_texts(files, Packed::as_they_are, any_bytes);
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: {}", field, e.what()));
  }
  auto opened = std::make_shared<const DataFiles>(field, files);
  const auto bytes = [](const DataFile&) { return TokenLayout(); };
  return {field, fmt::format("the text in '{}'", path.string()),
          std::make_shared<TokensOfFiles>(std::move(opened), bytes)};
}

NamedTokens open_source(const std::string& field, const config::Chosen& source) {
  const auto made = Registry<TokenSource>::instance().make(source);
  return {field, fmt::format("the source '{}'", source.name()), made->open(field)};
}

std::vector<NamedTokens> open_training(const TextDataConfig& config) {
  if (config.path) return {open_path("task.data.path", *config.path, config.bytes_of_files())};
  if (config.source) return {open_source("task.data.source", *config.source)};
  std::vector<NamedTokens> all;
  for (const MixtureSourceConfig& part : config.mixture) {
    all.push_back(
        open_source(fmt::format("task.data.mixture[{}].source", all.size()), part.source));
  }
  return all;
}

NamedTokens open_validation(const TextDataConfig& config) {
  if (config.validation_path) {
    return open_path("task.data.validation_path", *config.validation_path, config.bytes_of_files());
  }
  return open_source("task.data.validation_source", config.validation_source.value());
}

// Throws UserError when `tokens` of a set do not hold one sequence; padded ones may be short.
void check_length(const std::string& what, const TokenSet& set, int64_t tokens,
                  const TextDataConfig& config) {
  if (tokens == 0) throw UserError(what + " is empty");
  const int64_t sequence_length = config.sequence_length;
  const int64_t needed = TokenBlocks::tokens_needed(sequence_length);
  if (tokens >= needed || config.documents == Documents::padded) return;
  const bool are_bytes = set.element() == "bytes";
  throw UserError(fmt::format(
      "{} holds {} {}, but one sequence needs {}: task.data.sequence_length ({}) and the {} "
      "after it; give more text or lower task.data.sequence_length",
      what, tokens, set.element(), needed, sequence_length, are_bytes ? "byte" : "token"));
}

TokenSpan whole_of(const NamedTokens& named, const TextDataConfig& config) {
  check_length(fmt::format("{}: {}", named.field, named.meaning), *named.tokens,
               named.tokens->size(), config);
  return {.tokens = named.tokens, .begin = 0, .end = named.tokens->size()};
}

// The part of a source that is for a phase: validation has its end.
TokenSpan part_of(const NamedTokens& named, const TextDataConfig& config, const HeldBack& held_back,
                  bool training) {
  TokenSpan span = whole_of(named, config);
  const int64_t size = span.end;
  (training ? span.end : span.begin) = size - held_back.of(size);
  const std::string why = held_back.is_bounded(size)
                              ? fmt::format("validation_limit is {}", held_back.limit.value())
                              : fmt::format("validation_fraction is {}", held_back.fraction);
  check_length(fmt::format("{}: the {} part (task.data.{}) of {}", named.field,
                           training ? "training" : "validation", why, named.meaning),
               *named.tokens, span.end - span.begin, config);
  return span;
}

// The samples of several ranges of tokens, how many each has, and how many targets these have.
struct Samples {
  std::shared_ptr<const Dataset> all;
  std::vector<int64_t> by_span;
  std::vector<int64_t> targets_by_span;
};

Samples cut(std::vector<TokenSpan> spans, const TextDataConfig& config,
            std::optional<int64_t> vocabulary_size) {
  if (config.documents == Documents::padded) {
    auto documents = std::make_shared<DocumentSamples>(std::move(spans), config.sequence_length,
                                                       vocabulary_size);
    if (documents->size() > 0) {
      return {documents, documents->samples_by_span(), documents->targets_by_span()};
    }
    throw UserError(
        "task.data.documents is padded, but no document has a second token, so there is nothing "
        "to predict: is the source's end_of_text right?");
  }
  const TokenBlocks::Options options{
      .vocabulary_size = vocabulary_size,
      .separates_documents = config.documents == Documents::separated};
  auto blocks = std::make_shared<TokenBlocks>(std::move(spans), config.sequence_length, options);
  return {blocks, blocks->samples_by_span(), blocks->samples_by_span()};  // All of one length.
}

// How many samples of each source an epoch has. All have a share, or none has.
std::vector<int64_t> samples_per_epoch(const TextDataConfig& config, const Samples& cut_samples) {
  const std::vector<MixtureSourceConfig>& mixture = config.mixture;
  const std::vector<int64_t>& samples = cut_samples.by_span;
  if (mixture.front().share) {
    std::vector<double> shares;
    for (size_t i = 0; i < mixture.size(); ++i) {
      shares.push_back(mixture[i].share.value());
      if (config.mixture_shares_of == SharesOf::samples || samples[i] == 0) continue;
      // By the targets of a sample: a source of long ones needs fewer.
      shares[i] *=
          static_cast<double>(samples[i]) / static_cast<double>(cut_samples.targets_by_span[i]);
    }
    return samples_by_share(shares, std::accumulate(samples.begin(), samples.end(), int64_t{0}));
  }
  std::vector<int64_t> per_epoch;
  for (size_t i = 0; i < mixture.size(); ++i) {
    const double exact = mixture[i].epochs.value_or(1) * static_cast<double>(samples[i]);
    per_epoch.push_back(std::llround(exact));
  }
  return per_epoch;
}

std::shared_ptr<const Dataset> mix(const TextDataConfig& config, Samples cut_samples) {
  const std::vector<int64_t>& samples = cut_samples.by_span;
  const std::vector<int64_t> per_epoch = samples_per_epoch(config, cut_samples);
  std::vector<MixturePart> parts;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (per_epoch[i] < 1) {
      throw UserError(
          fmt::format("task.data.mixture[{}] has less than one of its {} samples in an epoch: "
                      "raise its share or "
                      "its epochs, or drop it",
                      i, samples[i]));
    }
    parts.push_back({.samples = samples[i], .per_epoch = per_epoch[i]});
  }
  return std::make_shared<Mixture>(std::move(cut_samples.all), std::move(parts));
}

std::optional<std::string> mistake_in_mixture(const std::vector<MixtureSourceConfig>& mixture) {
  const auto has_share = [](const auto& part) { return part.share.has_value(); };
  const auto with_share = std::count_if(mixture.begin(), mixture.end(), has_share);
  if (with_share == 0 || with_share == std::ssize(mixture)) return std::nullopt;
  return "mixture: give every source a share, or none";
}

}  // namespace

void MixtureSourceConfig::describe(config::Schema<MixtureSourceConfig>& s) {
  s.field("source", &MixtureSourceConfig::source, "its tokens")
      .mandatory()
      .out_of(registered_choice<TokenSource>());
  s.field(
       "share", &MixtureSourceConfig::share,
       "of the samples or tokens (mixture_shares_of), against the other sources' shares; an epoch "
       "has as many samples as all sources together")
      .greater_than(0)
      .at_most(1e9);
  s.field(
       "epochs", &MixtureSourceConfig::epochs,
       "how often an epoch of the mixture shows each of its samples; null: once, if there are no "
       "shares")
      .greater_than(0)
      .at_most(1e6);
  s.check([](const MixtureSourceConfig& c) -> std::optional<std::string> {
    if (!c.share || !c.epochs) return std::nullopt;
    return "share and epochs both say how much of the source: drop one";
  });
}

void TextDataConfig::describe(config::Schema<TextDataConfig>& s) {
  s.field("path", &TextDataConfig::path,
          "the training text, each byte a token: a file, a folder (with all files below it) or a "
          "glob pattern")
      .resume_may_change();  // The data's fingerprint guards its content.
  s.field("source", &TextDataConfig::source, "the training tokens, in place of path")
      .out_of(registered_choice<TokenSource>());
  s.field("mixture", &TextDataConfig::mixture,
          "several sources of training tokens in fixed proportions, in place of path");
  s.field("mixture_shares_of", &TextDataConfig::mixture_shares_of,
          "what the shares of the mixture's sources are shares of; padded samples differ in length")
      .choices({{"samples", SharesOf::samples}, {"tokens", SharesOf::tokens}});
  s.field("validation_path", &TextDataConfig::validation_path,
          "the validation text, as path; null: the end of the training text")
      .resume_may_change();
  s.field("validation_source", &TextDataConfig::validation_source,
          "the validation tokens, as source; null: the end of the training tokens")
      .out_of(registered_choice<TokenSource>());
  s.field("any_bytes", &TextDataConfig::any_bytes,
          "whether files of path, of validation_path and of predictions that are no text (Parquet, "
          "weights, another encoding, docs/data.md) are read as they are, and not refused")
      .resume_may_change();
  s.field(
       "tokenizer", &TextDataConfig::tokenizer,
       "the tokenizer of the source's tokens, a folder or file: checks the model's vocabulary, and "
       "turns the sample into text")
      .resume_may_change();
  s.field(
       "validation_fraction", &TextDataConfig::validation_fraction,
       "share of the training tokens, at the end of each source, kept for validation if there are "
       "no others for it; 0: no validation")
      .at_least(0)
      .less_than(1);
  s.field("validation_limit", &TextDataConfig::validation_limit,
          "no more than this is kept by validation_fraction, of each source; null: no limit")
      .count()
      .at_least(1)
      .unit("tokens")
      .older_runs_have_none();
  s.field("sequence_length", &TextDataConfig::sequence_length, "length of a sample")
      .at_least(1)
      .unit("tokens");
  s.field("documents", &TextDataConfig::documents,
          "how documents become samples: joined, one after the other; separated, the same, but "
          "attention and positions begin anew with each, and the loss leaves out its first token; "
          "padded, each a sample, filled up to the longest of its batch")
      .choices({{"joined", Documents::joined},
                {"separated", Documents::separated},
                {"padded", Documents::padded}});
  s.field("loader", &TextDataConfig::loader, "how samples are read");
  s.ineffective({"loader.sort_window"}, "all samples have one length",
                [](const TextDataConfig& c) { return c.documents != Documents::padded; });
  s.check([](const TextDataConfig& c) -> std::optional<std::string> {
    const int given = (c.path ? 1 : 0) + (c.source ? 1 : 0) + (c.mixture.empty() ? 0 : 1);
    if (given == 0) {
      return "give task.data.path, the training text, or task.data.source, files of tokens";
    }
    if (given > 1) return "path, source and mixture all name the training tokens: keep one";
    if (c.validation_path && c.validation_source) {
      return "validation_path and validation_source both name the validation tokens: drop one";
    }
    return mistake_in_mixture(c.mixture);
  });
  s.ineffective({"mixture_shares_of"}, "no source of a mixture has a share", [](const auto& c) {
    return c.mixture.empty() || !c.mixture.front().share.has_value();
  });
  s.ineffective({"tokenizer"}, "the tokens are the bytes of path",
                [](const TextDataConfig& c) { return c.path.has_value(); });
  s.ineffective({"validation_fraction", "validation_limit"}, "the validation tokens are given",
                [](const TextDataConfig& c) {
                  return c.validation_path.has_value() || c.validation_source.has_value();
                });
  s.ineffective({"validation_limit"}, "validation_fraction is 0",
                [](const TextDataConfig& c) { return c.validation_fraction == 0; });
}

bool TextDataConfig::are_bytes() const { return path || (source && source->name() == "bytes"); }

AnyBytes TextDataConfig::bytes_of_files() const {
  const bool has_source = source && source->name() == "bytes";
  return {.are_allowed = any_bytes || has_source, .allowed_by = "task.data.any_bytes=true"};
}

bool TextDataConfig::names_tokenizer() const {
  return are_bytes() || tokenizer || (source && source->name() == "text");
}

std::optional<int64_t> end_of_text_of_source(const TextDataConfig& config) {
  if (!config.source && config.mixture.empty()) return std::nullopt;
  return end_of_text_of(config.source ? *config.source : config.mixture.front().source);
}

std::optional<LoadedTokenizer> tokenizer_of_source(const TextDataConfig& config) {
  return Registry<TokenSource>::instance()
      .make(config.source.value())
      ->tokenizer("task.data.source");
}

TextDataConfig with_validation_files(TextDataConfig config,
                                     const std::vector<std::filesystem::path>& files) {
  if (files.empty()) return config;
  config.validation_path.reset();
  if (config.validation_source) {
    config.validation_source = with_files(*config.validation_source, files);
  } else if (config.path) {
    if (files.size() > 1) {
      throw UserError(
          "the text of task.data.path is one file, folder or pattern, and so is its "
          "validation data: name one");
    }
    config.validation_path = files.front();
  } else {
    const config::Chosen& source = config.source ? *config.source : config.mixture.front().source;
    config.validation_source = with_files(source, files);
  }
  return config;
}

void require_tokenizer(const TextDataConfig& config, Phase phase, const ReadWith& with) {
  const bool has_own = config.validation_path || config.validation_source;
  if (phase != Phase::train && has_own) {
    if (!config.validation_source) return;
    require_made_with("task.data.validation_source", *config.validation_source, with);
    return;
  }
  if (config.source) require_made_with("task.data.source", *config.source, with);
  for (size_t i = 0; i < config.mixture.size(); ++i) {
    require_made_with(fmt::format("task.data.mixture[{}].source", i), config.mixture[i].source,
                      with);
  }
}

PhaseSamples open_samples(const TextDataConfig& config, Phase phase,
                          std::optional<int64_t> vocabulary_size) {
  const bool training = phase == Phase::train;
  const bool has_own = config.validation_path || config.validation_source;
  const HeldBack held_back{.fraction = has_own ? 0.0 : config.validation_fraction,
                           .limit = config.validation_limit};
  if (!training && has_own) {
    return {cut({whole_of(open_validation(config), config)}, config, vocabulary_size).all, {}};
  }
  if (!training && held_back.fraction == 0) return {};
  std::vector<TokenSpan> spans;
  HeldBackSum sum;
  std::string element;
  for (const NamedTokens& named : open_training(config)) {
    spans.push_back(part_of(named, config, held_back, training));
    sum.add(held_back, named.tokens->size());
    element = named.tokens->element();
  }
  std::string text = sum.text(element, "task.data.validation_limit");
  Samples samples = cut(std::move(spans), config, vocabulary_size);
  if (!training || config.mixture.empty()) return {samples.all, std::move(text)};
  return {mix(config, std::move(samples)), std::move(text)};
}

}  // namespace phalanx
