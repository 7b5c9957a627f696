// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/state.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/pairs/json_lines.h"
#include "trainer/data/pairs/text_template.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// What becomes of a pair with more tokens than a sample takes.
enum class TooLong {
  cut,     ///< The tokens beyond are left out.
  broken,  ///< It counts as a broken sample.
};

/// Pairs of texts in JSONL files: inputs and targets.
struct PairsConfig {
  std::vector<std::filesystem::path> files;
  std::vector<std::filesystem::path> validation_files;
  double validation_fraction = 0.1;
  std::optional<int64_t> validation_limit = 10'000;
  std::string input;
  std::string target;
  bool special_tokens = false;
  TooLong too_long = TooLong::cut;

  static void describe(config::Schema<PairsConfig>& s);
};

/// The tokens of a pair, without an end-of-text token.
struct TokenPair {
  std::vector<int32_t> input;
  std::vector<int32_t> target;
};

/// The pairs of a range of lines, made into tokens when they are asked for. Thread-safe.
class TextPairs {
 public:
  /// Those of lines [begin, end).
  TextPairs(std::shared_ptr<const JsonLines> lines, int64_t begin, int64_t end,
            const PairsConfig& config, std::shared_ptr<const Tokenizer> tokenizer);

  int64_t size() const { return end_ - begin_; }

  /// Bytes of a pair's line: about proportional to its tokens, which are not known beforehand.
  int64_t bytes(int64_t index) const { return lines_->bytes(begin_ + index); }

  /// Throws BrokenSampleError, with file and line, for a line that has no such pair.
  TokenPair tokens(int64_t index) const;

  /// Cuts tokens of a pair to `limit`; whether any are left out. Throws BrokenSampleError if the
  /// config wants none to be cut; `what` they are, for the message.
  bool shorten(int64_t index, const char* what, int64_t limit, std::vector<int32_t>& tokens) const;

  /// A broken sample: `kind` without numbers, `problem` goes on behind its place.
  [[noreturn]] void fail(int64_t index, const std::string& kind, const std::string& problem) const;

  std::string fingerprint() const;

 private:
  const std::shared_ptr<const JsonLines> lines_;
  const int64_t begin_;
  const int64_t end_;
  const TextTemplate input_;
  const TextTemplate target_;
  const SpecialText special_;
  const TooLong too_long_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
};

/// The pairs of a phase; `held_back` says which pairs are kept for validation.
struct PhasePairs {
  std::shared_ptr<const TextPairs> pairs;  ///< nullptr where the phase has none.
  std::string held_back;                   ///< AnyTask::held_back.
};

/// Those that a config in task.data.pairs names. Throws UserError for what is missing or broken.
PhasePairs open_pairs(const PairsConfig& config, Phase phase,
                      std::shared_ptr<const Tokenizer> tokenizer);

/// The config with these files in the place of its validation's; with none as it is.
PairsConfig with_validation_files(PairsConfig config,
                                  const std::vector<std::filesystem::path>& files);

}  // namespace phalanx
