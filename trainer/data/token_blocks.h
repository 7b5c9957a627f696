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
#include "trainer/data/token_batch.h"
#include "trainer/data/token_span.h"

namespace phalanx {

/// Ranges of tokens cut into sequences of `length`, side by side: sample i of a range is its tokens
/// [begin + i * length, begin + (i + 1) * length), its targets are one token later. Makes
/// TokenBatch.
class TokenBlocks : public Dataset {
 public:
  struct Options {
    std::optional<int64_t> vocabulary_size;  ///< See read_known.
    /// A sequence keeps its documents apart: `positions` says where each begins, and the first
    /// token of one is no target of the document before it. Where an end-of-text token begins a
    /// document, that one stays a target. A document that began before its sequence begins anew.
    bool separates_documents = false;
  };

  /// What one sample needs: its tokens and the one after the last.
  static int64_t tokens_needed(int64_t length) { return length + 1; }

  /// Each range must lie inside its set and hold at least one sample.
  TokenBlocks(std::vector<TokenSpan> spans, int64_t length, Options options);
  TokenBlocks(std::vector<TokenSpan> spans, int64_t length);

  /// The samples of each range.
  std::vector<int64_t> samples_by_span() const { return samples_.lengths(); }

  int64_t size() const override { return samples_.size(); }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::string fingerprint() const override { return fingerprint_of(spans_, length_); }

 private:
  // Where a sample is.
  struct BlockLocation {
    const TokenSet& tokens;
    int64_t begin;
  };

  BlockLocation location_of(int64_t index) const;
  int64_t separate_documents(const BlockLocation& location, std::span<int64_t> positions,
                             std::span<int64_t> targets) const;

  const std::vector<TokenSpan> spans_;
  const int64_t length_;
  const Options options_;
  EndToEnd samples_;  // The spans' samples.
};

}  // namespace phalanx
