// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/sequence_pairs.h"

#include <iterator>
#include <utility>

#include "trainer/data/padded_rows.h"

namespace phalanx {
namespace {

std::vector<int64_t> with_end(const std::vector<int32_t>& tokens, int64_t end_of_text) {
  std::vector<int64_t> row(tokens.begin(), tokens.end());
  row.push_back(end_of_text);
  return row;
}

}  // namespace

SequencePairs::Sample SequencePairs::sample(int64_t index) const {
  TokenPair pair = pairs().tokens(index);
  const bool cuts_input = pairs().shorten(index, "input", options_.input_length - 1, pair.input);
  const bool cuts_target =
      pairs().shorten(index, "target", options_.target_length - 1, pair.target);
  return {.input = with_end(pair.input, options_.end_of_text),
          .target = with_end(pair.target, options_.end_of_text),
          .is_cut = cuts_input || cuts_target};
}

bool SequencePairs::is_cut(int64_t index) const { return sample(index).is_cut; }

std::unique_ptr<Batch> SequencePairs::batch(std::span<const int64_t> indices) const {
  auto batch = std::make_unique<SequencePairBatch>();
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> targets;
  for (const int64_t index : indices) {
    Sample made = sample(index);
    batch->tokens += std::ssize(made.target);
    inputs.push_back(std::move(made.input));
    targets.push_back(std::move(made.target));
  }
  batch->samples = std::ssize(indices);
  batch->inputs = padded_rows(inputs, 0);
  batch->mask = mask_of_rows(inputs);
  batch->targets = padded_rows(targets, kNoTarget);
  return batch;
}

}  // namespace phalanx
