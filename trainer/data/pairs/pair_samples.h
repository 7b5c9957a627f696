// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "trainer/api/state.h"
#include "trainer/data/dataset.h"
#include "trainer/data/pairs/text_pairs.h"

namespace phalanx {

/// Pairs of texts as samples. Those of similar length are put side by side by the bytes of their
/// lines.
class PairSamples : public Dataset {
 public:
  explicit PairSamples(std::shared_ptr<const TextPairs> pairs) : pairs_(std::move(pairs)) {}

  int64_t size() const override { return pairs_->size(); }
  std::optional<int64_t> length(int64_t index) const override { return pairs_->bytes(index); }
  std::string fingerprint() const override { return pairs_->fingerprint(); }
  void fail(int64_t index, const std::string& kind, const std::string& problem) const override {
    pairs_->fail(index, kind, problem);
  }

  /// Whether a pair has more tokens than its sample. Throws BrokenSampleError as `batch`.
  virtual bool is_cut(int64_t index) const = 0;

 protected:
  const TextPairs& pairs() const { return *pairs_; }

 private:
  std::shared_ptr<const TextPairs> pairs_;
};

/// How many of the pairs that were looked at are cut.
struct CutPairs {
  int64_t looked_at = 0;
  int64_t cut = 0;
};

/// Looks at up to 100 pairs, evenly spread, so that a wrong field or length shows before the first
/// step. A broken one throws UserError, unless `may_break`: it is left out then.
CutPairs look_at_pairs(const PairSamples& samples, bool may_break);

/// What pairs are for, in a warning of them: "training" or "validation"; of files that a task was
/// given, a named set's say, "validation on 'books.jsonl'".
std::string use_of_pairs(Phase phase, std::span<const std::filesystem::path> given_files);

}  // namespace phalanx
