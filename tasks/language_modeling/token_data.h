// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/task.h"
#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/dataset.h"
#include "trainer/data/loader.h"
#include "trainer/data/made_with.h"
#include "trainer/data/text/require_text.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {

/// A source of a mixture, and how much of it.
struct MixtureSourceConfig {
  config::Chosen source;
  std::optional<double> share;
  std::optional<double> epochs;

  static void describe(config::Schema<MixtureSourceConfig>& s);
};

/// How the documents of the tokens become sequences.
enum class Documents {
  joined,     ///< One after the other; a sequence sees all that it holds.
  separated,  ///< One after the other, kept apart inside a sequence.
  padded,     ///< Each is a sequence of its own.
};

/// What the shares of a mixture's sources are shares of.
enum class SharesOf { samples, tokens };

/// Which tokens, and how they are cut.
struct TextDataConfig {
  std::optional<std::filesystem::path> path;
  std::optional<config::Chosen> source;
  std::vector<MixtureSourceConfig> mixture;
  SharesOf mixture_shares_of = SharesOf::samples;
  std::optional<std::filesystem::path> validation_path;
  std::optional<config::Chosen> validation_source;
  bool any_bytes = false;
  std::optional<std::filesystem::path> tokenizer;
  double validation_fraction = 0.1;
  std::optional<int64_t> validation_limit = int64_t{1} << 20;
  int64_t sequence_length = 256;
  Documents documents = Documents::joined;
  LoaderConfig loader;

  static void describe(config::Schema<TextDataConfig>& s);

  /// Whether each byte is a token.
  bool are_bytes() const;
  /// Whether files of text may hold any bytes: the source `bytes` says so, too.
  AnyBytes bytes_of_files() const;
  /// Whether the tokens can be made into text: bytes, or those of a tokenizer that is named.
  bool names_tokenizer() const;
};

/// The samples of a phase; `held_back` says which training tokens are kept for validation.
struct PhaseSamples {
  std::shared_ptr<const Dataset> samples;  ///< nullptr where the phase has none.
  std::string held_back;                   ///< AnyTask::held_back.
};

/// `vocabulary_size` is the model's. Throws UserError for what is missing, broken or too short.
PhaseSamples open_samples(const TextDataConfig& config, Phase phase,
                          std::optional<int64_t> vocabulary_size);

/// The config with these files in the place of its validation data, read as that is: by
/// validation_source where it is given, else as the training data, of a mixture as its first
/// source. With no files as it is. Throws UserError for a source that cannot read others.
TextDataConfig with_validation_files(TextDataConfig config,
                                     const std::vector<std::filesystem::path>& files);

/// Throws UserError where the tokens of a phase are of another tokenizer than `with`.
void require_tokenizer(const TextDataConfig& config, Phase phase, const ReadWith& with);

/// The token between the documents of the source, or of the mixture's first one, where the source's
/// config names it (end_of_text).
std::optional<int64_t> end_of_text_of_source(const TextDataConfig& config);

/// The tokenizer that the source names, if it names one. Throws UserError where it cannot be read.
std::optional<LoadedTokenizer> tokenizer_of_source(const TextDataConfig& config);

}  // namespace phalanx
