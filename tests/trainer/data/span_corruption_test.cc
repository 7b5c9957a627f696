// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/span_corruption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/trainer/data/stored_numbers.h"
#include "trainer/data/corrupted_spans.h"
#include "trainer/data/loader.h"

namespace phalanx {
namespace {

constexpr int64_t kFirstSentinel = 32099;
constexpr int64_t kEnd = 1;

// A text whose tokens say where they stand.
std::shared_ptr<const TokenSet> text_of(int64_t count) {
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 2);
  return std::make_shared<StoredNumbers>(std::move(tokens));
}

std::shared_ptr<const CorruptedSpans> corrupted(int64_t tokens, int64_t input_length,
                                                uint64_t seed = 3) {
  const CorruptedSpans::Options options{
      .input_length = input_length, .first_sentinel = kFirstSentinel, .end_of_text = kEnd};
  return std::make_shared<CorruptedSpans>(std::vector<TokenSpan>{{text_of(tokens), 0, tokens}},
                                          options, seed);
}

struct Rows {
  std::vector<int64_t> input;
  std::vector<int64_t> target;
};

Rows rows_of(const Dataset& samples, int64_t index) {
  const auto batch = samples.batch(std::vector{index});
  const auto& pair = static_cast<const SequencePairBatch&>(*batch);
  EXPECT_EQ(batch->tokens, pair.targets.numel());
  EXPECT_FALSE(pair.mask.defined());
  return {numbers_in(pair.inputs), numbers_in(pair.targets)};
}

bool is_sentinel(int64_t token) { return token > 30000; }

// The text again: each sentinel of the input is replaced by what stands behind it in the target.
std::vector<int64_t> joined(const Rows& rows) {
  std::vector<int64_t> text;
  int64_t expected = kFirstSentinel;
  for (const int64_t token : rows.input) {
    if (!is_sentinel(token)) {
      text.push_back(token);
      continue;
    }
    EXPECT_EQ(token, expected--);
    auto place = std::find(rows.target.begin(), rows.target.end(), token);
    EXPECT_NE(place, rows.target.end());
    while (++place != rows.target.end() && !is_sentinel(*place) && *place != kEnd) {
      text.push_back(*place);
    }
  }
  return text;
}

// T5's own (inputs_length 512, noise_density 0.15, mean_noise_span_length 3) is 568 and 114.
TEST(SpanCorruption, LengthsAreThoseOfT5) {
  EXPECT_EQ(corruption_lengths(512, {}), (CorruptionLengths{568, 512, 114}));
  EXPECT_EQ(noise_spans(568, {}), 28);
}

TEST(SpanCorruption, AMaskHasItsShareOfNoiseInItsNumberOfSpans) {
  for (int64_t tokens = 2; tokens < 300; ++tokens) {
    SplitMix64 random{static_cast<uint64_t>(tokens)};
    const std::vector<bool> mask = noise_mask(tokens, {}, random);
    ASSERT_EQ(std::ssize(mask), tokens);
    EXPECT_FALSE(mask.front());
    EXPECT_TRUE(mask.back());
    const auto noisy = std::count(mask.begin(), mask.end(), true);
    EXPECT_EQ(noisy, std::max(1L, std::lrint(0.15 * static_cast<double>(tokens))));
    int64_t spans = 0;
    for (size_t i = 1; i < mask.size(); ++i) spans += mask[i] && !mask[i - 1] ? 1 : 0;
    EXPECT_EQ(spans, noise_spans(tokens, {}));
  }
}

TEST(SpanCorruption, EveryWayToCutSpansIsEquallyLikely) {
  // 10 tokens, 4 of noise in 2 spans: 3 ways to cut these, and 5 to cut the 6 others.
  const SpanNoise noise{.density = 0.4, .mean_span_length = 2};
  std::map<std::vector<bool>, int> seen;
  constexpr int kDraws = 15000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    SplitMix64 random{7, i};
    ++seen[noise_mask(10, noise, random)];
  }
  EXPECT_EQ(seen.size(), 15u);
  for (const auto& [mask, count] : seen) EXPECT_NEAR(count, kDraws / 15, 160);  // 5 deviations
}

TEST(CorruptedSpans, InputsAndTargetsAreTheTextTogether) {
  const auto samples = corrupted(568 * 20 + 5, 512);
  ASSERT_EQ(samples->size(), 20);  // 5 tokens are left over.
  for (int64_t index = 0; index < samples->size(); ++index) {
    const Rows rows = rows_of(*samples, index);
    EXPECT_EQ(rows.input.size(), 512u);
    EXPECT_EQ(rows.target.size(), 114u);
    EXPECT_EQ(rows.input.back(), kEnd);
    EXPECT_EQ(rows.target.back(), kEnd);
    std::vector<int64_t> expected(568);
    std::iota(expected.begin(), expected.end(), 2 + 568 * index);
    expected.push_back(kEnd);
    EXPECT_EQ(joined(rows), expected);
  }
}

TEST(CorruptedSpans, NoiseDependsOnSeedEpochAndSampleAlone) {
  const auto samples = corrupted(40 * 100, 36);
  const auto input = [](const Dataset& set, int64_t index) { return rows_of(set, index).input; };
  EXPECT_EQ(input(*samples, 7), input(*samples->of_epoch(0, {}), 7));
  EXPECT_EQ(input(*samples->of_epoch(5, {}), 7),
            input(*corrupted(40 * 100, 36)->of_epoch(5, 9), 7));
  EXPECT_NE(input(*samples, 7), input(*samples->of_epoch(1, {}), 7));
  EXPECT_NE(input(*samples, 7), input(*corrupted(40 * 100, 36, 4), 7));
  EXPECT_EQ(samples->fingerprint(), corrupted(40 * 100, 36, 4)->fingerprint());
  EXPECT_NE(samples->fingerprint(), corrupted(40 * 100, 37)->fingerprint());
}

// The inputs of global batches of 12, each batch sorted.
std::vector<std::vector<std::vector<int64_t>>> global_batches(int64_t world_size, int64_t workers) {
  const auto samples = corrupted(40 * 100, 36);
  std::vector<std::vector<std::vector<int64_t>>> batches;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    const auto source = load(
        samples, {.num_workers = workers},
        {.batch_size = 12 / world_size, .rank = rank, .world_size = world_size, .seed = 3}, true);
    source->start_epoch(2, 0);
    for (size_t number = 0; const auto batch = source->next(); ++number) {
      if (!batch->counts) continue;
      batches.resize(std::max(batches.size(), number + 1));
      const auto& inputs = static_cast<const SequencePairBatch&>(*batch).inputs;
      for (int64_t row = 0; row < inputs.size(0); ++row) {
        batches[number].push_back(numbers_in(inputs.select(0, row)));
      }
    }
  }
  for (auto& batch : batches) std::sort(batch.begin(), batch.end());
  return batches;
}

TEST(CorruptedSpans, AreTheSameForAnyRanksAndWorkers) {
  const auto expected = global_batches(1, 0);
  ASSERT_GT(expected.size(), 5u);
  EXPECT_EQ(global_batches(2, 1), expected);
  EXPECT_EQ(global_batches(3, 4), expected);
}

TEST(CorruptedSpans, RefuseATextThatHoldsASentinel) {
  auto tokens = std::vector<int64_t>(40, 5);
  tokens[13] = kFirstSentinel;
  const CorruptedSpans samples(
      {{std::make_shared<StoredNumbers>(tokens), 0, 40}},
      {.input_length = 36, .first_sentinel = kFirstSentinel, .end_of_text = kEnd}, 1);
  EXPECT_THROW(samples.batch(std::vector<int64_t>{0}), std::runtime_error);
  EXPECT_THROW(corrupted(10, 36), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
