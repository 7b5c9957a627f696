// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/data/pairs/pair_samples.h"
#include "trainer/data/sequence_pair_batch.h"

namespace phalanx {

/// Pairs for a model that reads one sequence and writes another. An end-of-text token follows each
/// text, also a text that is cut. Makes SequencePairBatch, as wide as its longest sequences.
class SequencePairs : public PairSamples {
 public:
  /// Lengths are in tokens, the end-of-text token included.
  struct Options {
    int64_t input_length = 0;
    int64_t target_length = 0;
    int64_t end_of_text = 0;
  };

  SequencePairs(std::shared_ptr<const TextPairs> pairs, const Options& options)
      : PairSamples(std::move(pairs)), options_(options) {}

  std::unique_ptr<Batch> batch(std::span<const int64_t> indices) const override;
  bool is_cut(int64_t index) const override;

 private:
  struct Sample {
    std::vector<int64_t> input;
    std::vector<int64_t> target;
    bool is_cut = false;
  };

  Sample sample(int64_t index) const;

  const Options options_;
};

}  // namespace phalanx
