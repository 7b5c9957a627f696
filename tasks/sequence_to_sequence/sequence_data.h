// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "trainer/api/batch_source.h"
#include "trainer/api/task.h"
#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/forward.h"
#include "trainer/data/loader.h"
#include "trainer/data/pairs/text_pairs.h"
#include "trainer/data/task_tokenizer.h"

namespace phalanx {

/// Tokens, of which spans are replaced by sentinels; the model writes the spans.
struct SpanCorruptionConfig {
  config::Chosen source;
  std::optional<config::Chosen> validation_source;
  double validation_fraction = 0.1;
  std::optional<int64_t> validation_limit = int64_t{1} << 20;
  double noise_density = 0.15;
  double mean_span_length = 3;
  std::optional<int64_t> first_sentinel;
  int64_t sentinels = 100;

  static void describe(config::Schema<SpanCorruptionConfig>& s);
};

/// Which sequences a model reads and writes.
struct SequenceDataConfig {
  std::optional<PairsConfig> pairs;
  std::optional<SpanCorruptionConfig> span_corruption;
  std::optional<std::filesystem::path> tokenizer;
  std::optional<int64_t> end_of_text;
  int64_t input_length = 512;
  int64_t target_length = 128;
  LoaderConfig loader;

  static void describe(config::Schema<SequenceDataConfig>& s);
};

/// The tokenizer of task.data.tokenizer, or the one that the source names. Throws UserError where
/// it cannot be read.
TaskTokenizer tokenizer_of(const SequenceDataConfig& config);

/// The tokenizer of the pairs' texts. With special_tokens T5's sentinels are special tokens, too:
/// its own, or the 100 behind its tokens, as those of T5's spiece.model. nullptr without a
/// tokenizer.
std::shared_ptr<const Tokenizer> tokenizer_of_pairs(const PairsConfig& config,
                                                    const TaskTokenizer& tokenizer);

/// The token of the first span: T5 numbers its sentinels from the last one behind the tokenizer's
/// tokens downwards. Throws UserError if nothing says where they are.
int64_t first_sentinel_of(const SpanCorruptionConfig& config, const TaskTokenizer& tokenizer);

/// The micro-batches of a phase; `held_back` says which data is kept for validation.
struct Sequences {
  std::unique_ptr<BatchSource> batches;  ///< nullptr where the phase has none.
  std::string held_back;                 ///< AnyTask::held_back.
};

/// `vocabulary_size` is the model's. Throws UserError for what is missing, broken or too short.
Sequences open_sequences(const SequenceDataConfig& config, const TaskTokenizer& tokenizer,
                         Phase phase, std::optional<int64_t> vocabulary_size,
                         const BatchRequest& request);

}  // namespace phalanx
