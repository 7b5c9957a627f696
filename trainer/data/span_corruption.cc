// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/span_corruption.h"

#include <algorithm>
#include <cmath>

namespace phalanx {
namespace {

// As Python's round: a half goes to the even number.
int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

int64_t share_of(int64_t tokens, double share) {
  return rounded(static_cast<double>(tokens) * share);
}

CorruptionLengths lengths_of(int64_t tokens, const SpanNoise& noise) {
  const int64_t noisy = share_of(tokens, noise.density);
  const int64_t spans = rounded(static_cast<double>(noisy) / noise.mean_span_length);
  return {.tokens = tokens, .inputs = tokens - noisy + spans + 1, .targets = noisy + spans + 1};
}

int64_t noise_tokens(int64_t tokens, const SpanNoise& noise) {
  return std::clamp<int64_t>(share_of(tokens, noise.density), 1, tokens - 1);
}

// The lengths of `count` parts of so many items, each way to cut them equally likely. Every gap is
// one of the cuts that are left with the share of them in the gaps that are left.
std::vector<int64_t> random_parts(int64_t items, int64_t count, SplitMix64& random) {
  std::vector<int64_t> lengths{1};
  int64_t cuts = count - 1;
  for (int64_t gaps = items - 1; gaps > 0; --gaps) {
    if (random.below(static_cast<uint64_t>(gaps)) < static_cast<uint64_t>(cuts)) {
      lengths.push_back(1);
      --cuts;
    } else {
      ++lengths.back();
    }
  }
  return lengths;
}

}  // namespace

CorruptionLengths corruption_lengths(int64_t input_length, const SpanNoise& noise) {
  int64_t tokens = input_length;
  while (lengths_of(tokens + 1, noise).inputs <= input_length) ++tokens;
  CorruptionLengths lengths = lengths_of(tokens, noise);
  // With half of the text as noise both have the round number that the inputs were given.
  if (noise.density == 0.5 && lengths.targets > lengths.inputs) {
    --lengths.tokens;
    --lengths.targets;
  }
  return lengths;
}

int64_t noise_spans(int64_t tokens, const SpanNoise& noise) {
  const int64_t noisy = noise_tokens(tokens, noise);
  const auto most = static_cast<double>(std::min(noisy, tokens - noisy));
  return std::max<int64_t>(rounded(most / noise.mean_span_length), 1);
}

std::vector<bool> noise_mask(int64_t tokens, const SpanNoise& noise, SplitMix64& random) {
  const int64_t noisy = noise_tokens(tokens, noise);
  const int64_t spans = noise_spans(tokens, noise);
  const std::vector<int64_t> lengths = random_parts(noisy, spans, random);
  const std::vector<int64_t> lengths_between = random_parts(tokens - noisy, spans, random);
  std::vector<bool> mask;
  for (size_t span = 0; span < lengths.size(); ++span) {
    mask.insert(mask.end(), static_cast<size_t>(lengths_between[span]), false);
    mask.insert(mask.end(), static_cast<size_t>(lengths[span]), true);
  }
  return mask;
}

}  // namespace phalanx
