// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/data/dataset.h"
#include "trainer/data/token_set.h"

namespace phalanx {

/// A range of tokens cut into sequences of `length`, side by side: sample i is tokens
/// [begin + i * length, begin + (i + 1) * length), its targets are one token later. Makes
/// TokenBatch.
class TokenBlocks : public Dataset {
 public:
  /// What one sample needs: its tokens and the one after the last.
  static int64_t tokens_needed(int64_t length) { return length + 1; }

  /// The range [begin, end) must lie inside the set and hold at least one sample. With a
  /// `vocabulary_size`, a token that is not in [0, vocabulary_size) makes `batch` throw
  /// std::runtime_error, which names its place: a model would read beyond its embedding.
  TokenBlocks(std::shared_ptr<const TokenSet> tokens, int64_t begin, int64_t end, int64_t length,
              std::optional<int64_t> vocabulary_size = {});

  int64_t size() const override;
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;

  /// A hash (XXH3, 64 bits) of the length of a sample, the number of tokens and the tokens
  /// themselves: all of them up to 2^20, else 256 evenly spread blocks of 4096, the first and the
  /// last included. So it is cheap for any size, does not depend on where the files lie or how they
  /// are cut, and may miss a change inside big data that keeps its length.
  std::string fingerprint() const override;

 private:
  void read_sample(int64_t index, std::span<int64_t> out) const;

  const std::shared_ptr<const TokenSet> tokens_;
  const int64_t begin_;
  const int64_t end_;
  const int64_t length_;
  const std::optional<int64_t> vocabulary_size_;
};

}  // namespace phalanx
