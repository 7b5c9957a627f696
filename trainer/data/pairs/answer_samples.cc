// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/answer_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trainer/data/padded_rows.h"

namespace phalanx {

AnswerSamples::Sample AnswerSamples::sample(int64_t index) const {
  const TokenPair pair = pairs().tokens(index);
  std::vector<int32_t> tokens = pair.input;
  tokens.insert(tokens.end(), pair.target.begin(), pair.target.end());
  tokens.push_back(static_cast<int32_t>(options_.end_of_text));
  Sample sample;
  sample.is_cut = pairs().shorten(index, "pair", options_.sequence_length + 1, tokens);
  // The first token of a sequence is nobody's target.
  const int64_t first_learned = std::max<int64_t>(std::ssize(pair.input), 1);
  sample.learned = std::ssize(tokens) - first_learned;
  if (sample.learned < 1) {
    pairs().fail(index, "a pair without a token to learn",
                 fmt::format("the input has {} tokens, so that no target is left of {} "
                             "(task.data.sequence_length)",
                             pair.input.size(), options_.sequence_length));
  }
  sample.inputs.assign(tokens.begin(), tokens.end() - 1);
  sample.targets.assign(sample.inputs.size(), kNoTarget);
  std::copy(tokens.end() - sample.learned, tokens.end(), sample.targets.end() - sample.learned);
  return sample;
}

bool AnswerSamples::is_cut(int64_t index) const { return sample(index).is_cut; }

std::unique_ptr<Batch> AnswerSamples::batch(std::span<const int64_t> indices) const {
  auto batch = std::make_unique<TokenBatch>();
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> targets;
  for (const int64_t index : indices) {
    Sample made = sample(index);
    batch->tokens += made.learned;
    inputs.push_back(std::move(made.inputs));
    targets.push_back(std::move(made.targets));
  }
  batch->samples = std::ssize(indices);
  batch->inputs = padded_rows(inputs, 0);
  batch->targets = padded_rows(targets, kNoTarget);
  return batch;
}

}  // namespace phalanx
