// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/corrupted_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "trainer/api/broken_sample.h"
#include "trainer/data/padded_rows.h"

namespace phalanx {

CorruptedSpans::CorruptedSpans(std::vector<TokenSpan> spans, const Options& options, uint64_t seed)
    : spans_(std::move(spans)),
      options_(options),
      seed_(seed),
      length_(corruption_lengths(options.input_length, options.noise).tokens) {
  for (const TokenSpan& span : spans_) {
    if (span.begin < 0 || span.begin > span.end || span.end > span.tokens->size()) {
      throw std::invalid_argument(fmt::format("[{}, {}) is no part of {} tokens", span.begin,
                                              span.end, span.tokens->size()));
    }
    texts_.add((span.end - span.begin) / length_);
  }
  if (size() == 0) throw std::invalid_argument(fmt::format("no text of {} tokens", length_));
}

std::unique_ptr<Batch> CorruptedSpans::batch(std::span<const int64_t> indices) const {
  auto batch = std::make_unique<SequencePairBatch>();
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::vector<int64_t>> targets;
  for (const int64_t index : indices) {
    Pair made = pair(index);
    batch->tokens += std::ssize(made.target);
    inputs.push_back(std::move(made.input));
    targets.push_back(std::move(made.target));
  }
  batch->samples = std::ssize(indices);
  batch->inputs = padded_rows(inputs, options_.end_of_text);
  batch->targets = padded_rows(targets, kNoTarget);
  return batch;
}

CorruptedSpans::Pair CorruptedSpans::pair(int64_t index) const {
  const std::vector<int64_t> tokens = text(index);
  SplitMix64 random{seed_, static_cast<uint64_t>(epoch_), static_cast<uint64_t>(index)};
  const std::vector<bool> is_noise = noise_mask(length_, options_.noise, random);
  Pair pair;
  int64_t sentinel = options_.first_sentinel;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!is_noise[i]) {
      pair.input.push_back(tokens[i]);
      continue;
    }
    if (i == 0 || !is_noise[i - 1]) {
      pair.input.push_back(sentinel);
      pair.target.push_back(sentinel--);
    }
    pair.target.push_back(tokens[i]);
  }
  pair.input.push_back(options_.end_of_text);
  pair.target.push_back(options_.end_of_text);
  return pair;
}

std::vector<int64_t> CorruptedSpans::text(int64_t index) const {
  const size_t number = texts_.part_at(index);
  const TokenSpan& span = spans_.at(number);
  const int64_t begin = span.begin + (index - texts_.begin(number)) * length_;
  std::vector<int64_t> tokens(static_cast<size_t>(length_));
  read_known(*span.tokens, begin, options_.vocabulary_size, tokens);
  refuse_sentinels(*span.tokens, begin, tokens);
  return tokens;
}

void CorruptedSpans::refuse_sentinels(const TokenSet& set, int64_t begin,
                                      std::span<const int64_t> tokens) const {
  const int64_t last = options_.first_sentinel - noise_spans(length_, options_.noise) + 1;
  const auto found = std::find_if(tokens.begin(), tokens.end(), [&](int64_t token) {
    return token >= last && token <= options_.first_sentinel;
  });
  if (found == tokens.end()) return;
  const int64_t place = begin + (found - tokens.begin());
  throw BrokenSampleError(
      {.source = set.file_of(place),
       .kind = "a sentinel in a text",
       .message = fmt::format("{} is {}, which is a sentinel: the sentinels are {} to {} "
                              "(task.data.span_corruption.first_sentinel)",
                              set.place_of(place), *found, last, options_.first_sentinel)});
}

std::shared_ptr<const Dataset> CorruptedSpans::of_epoch(int64_t epoch,
                                                        std::optional<uint64_t> /*seed*/) const {
  auto samples = std::make_shared<CorruptedSpans>(*this);
  samples->epoch_ = epoch;
  return samples;
}

std::string CorruptedSpans::fingerprint() const {
  return "spans-" + fingerprint_of(spans_, length_);
}

}  // namespace phalanx
