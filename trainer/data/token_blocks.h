// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/token_set.h"

namespace phalanx {

/// A part of a set of tokens: [begin, end).
struct TokenSpan {
  std::shared_ptr<const TokenSet> tokens;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Ranges of tokens cut into sequences of `length`, side by side: sample i of a range is its tokens
/// [begin + i * length, begin + (i + 1) * length), its targets are one token later. Makes
/// TokenBatch.
class TokenBlocks : public Dataset {
 public:
  /// What one sample needs: its tokens and the one after the last.
  static int64_t tokens_needed(int64_t length) { return length + 1; }

  /// Each range must lie inside its set and hold at least one sample. With a `vocabulary_size`, a
  /// token that is not in [0, vocabulary_size) makes `batch` throw std::runtime_error, which names
  /// its place: a model would read beyond its embedding.
  TokenBlocks(std::vector<TokenSpan> spans, int64_t length,
              std::optional<int64_t> vocabulary_size = {});

  /// The samples of each range.
  std::vector<int64_t> samples_by_span() const;

  int64_t size() const override;
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;

  /// A hash (XXH3, 64 bits) of the length of a sample, and of each range the number of tokens and
  /// the tokens themselves: all of them up to 2^20, else 256 evenly spread blocks of 4096, the
  /// first and the last included. So it is cheap for any size, does not depend on where the files
  /// lie or how they are cut, and may miss a change inside big data that keeps its length.
  std::string fingerprint() const override;

 private:
  void read_sample(int64_t index, std::span<int64_t> out) const;

  std::string fingerprint_of(const TokenSpan& span) const;

  const std::vector<TokenSpan> spans_;
  const int64_t length_;
  std::vector<int64_t> ends_;  // Of the spans, in samples.
  const std::optional<int64_t> vocabulary_size_;
};

}  // namespace phalanx
