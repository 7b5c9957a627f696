// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/end_to_end.h"
#include "trainer/data/sequence_pair_batch.h"
#include "trainer/data/span_corruption.h"
#include "trainer/data/token_span.h"

namespace phalanx {

/// Texts of equal length, cut from ranges of tokens, in which spans are replaced by sentinels: the
/// first span by `first_sentinel`, each further one by the token before. The targets are the spans,
/// each behind its sentinel. An end-of-text token ends both. Which spans depends on seed, epoch and
/// number of a sample alone. Makes SequencePairBatch without a mask.
class CorruptedSpans : public Dataset {
 public:
  struct Options {
    int64_t input_length = 512;  ///< The most tokens of an input, sentinels and end included.
    SpanNoise noise;
    int64_t first_sentinel = 0;  ///< At least noise_spans.
    int64_t end_of_text = 0;
    std::optional<int64_t> vocabulary_size;  ///< See read_known.
  };

  /// Ranges must lie inside their sets, and hold at least one text together.
  CorruptedSpans(std::vector<TokenSpan> spans, const Options& options, uint64_t seed);

  int64_t size() const override { return texts_.size(); }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::shared_ptr<const Dataset> of_epoch(int64_t epoch,
                                          std::optional<uint64_t> seed) const override;
  std::string fingerprint() const override;

 private:
  struct Pair {
    std::vector<int64_t> input;
    std::vector<int64_t> target;
  };

  Pair pair(int64_t index) const;
  std::vector<int64_t> text(int64_t index) const;
  void refuse_sentinels(const TokenSet& set, int64_t begin, std::span<const int64_t> tokens) const;

  std::vector<TokenSpan> spans_;
  Options options_;
  uint64_t seed_;
  int64_t epoch_ = 0;
  int64_t length_;  // Tokens in a text.
  EndToEnd texts_;  // The texts of the ranges.
};

}  // namespace phalanx
