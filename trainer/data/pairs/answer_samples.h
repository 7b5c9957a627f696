// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/pairs/pair_samples.h"
#include "trainer/data/token_batch.h"

namespace phalanx {

/// Pairs for a model that goes on from what it reads: the input, the target and an end-of-text
/// token in one sequence, of which the target and end-of-text are learned. A sequence that is too
/// long loses its end. Makes TokenBatch, as wide as its longest sequence.
class AnswerSamples : public PairSamples {
 public:
  struct Options {
    int64_t sequence_length = 0;  ///< Length of the model's inputs; a sample has one token more.
    int64_t end_of_text = 0;
  };

  AnswerSamples(std::shared_ptr<const TextPairs> pairs, const Options& options)
      : PairSamples(std::move(pairs)), options_(options) {}

  /// Also throws BrokenSampleError for a pair of which no target is left.
  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  bool is_cut(int64_t index) const override;

 private:
  struct Sample {
    std::vector<int64_t> inputs;
    std::vector<int64_t> targets;  // The inputs one token later, or kNoTarget.
    int64_t learned = 0;
    bool is_cut = false;
  };

  Sample sample(int64_t index) const;

  const Options options_;
};

}  // namespace phalanx
