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

/// The documents of ranges of tokens, each a sample of its own; one with more than `length` + 1
/// tokens is cut into several, as TokenBlocks cuts a range. A document of one token, which has no
/// target, is left out. Where an end-of-text token begins a document, it is also the last target of
/// the one before it. A micro-batch is as wide as its longest sample: the others are filled up with
/// token 0, without targets. Makes TokenBatch.
class DocumentSamples : public Dataset {
 public:
  /// Reads all tokens once to find the documents, and keeps 24 bytes of each. Each range must lie
  /// inside its set; the samples of one may be none. `vocabulary_size`: see read_known.
  DocumentSamples(std::vector<TokenSpan> spans, int64_t length,
                  std::optional<int64_t> vocabulary_size = {});

  /// The samples of each range, and the targets that these have.
  std::vector<int64_t> samples_by_span() const { return by_span_.lengths(); }
  const std::vector<int64_t>& targets_by_span() const { return targets_; }

  int64_t size() const override { return samples_; }
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  std::optional<int64_t> length(int64_t index) const override;
  std::string fingerprint() const override;

 private:
  // Tokens [begin, end) of a span, the last of which is only a target.
  struct Document {
    int64_t begin;
    int64_t end;
    int64_t first_sample;
  };
  // What a sample reads: `length` tokens and the one after the last.
  struct TokenRange {
    const TokenSet& tokens;
    int64_t begin;
    int64_t length;
  };

  void find_documents(const TokenSpan& span);
  void add_document(int64_t begin, int64_t end);
  TokenRange range_of(int64_t index) const;

  const std::vector<TokenSpan> spans_;
  const int64_t length_;
  const std::optional<int64_t> vocabulary_size_;
  std::vector<Document> documents_;  // The documents of all spans.
  EndToEnd by_span_;                 // The spans' samples.
  std::vector<int64_t> targets_;     // Targets in each span.
  int64_t samples_ = 0;
};

}  // namespace phalanx
