// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace phalanx {
namespace {

std::vector<int64_t> all_of(const SampleOrder& order) {
  std::vector<int64_t> samples;
  for (int64_t place = 0; place < order.size(); ++place) samples.push_back(order.at(place));
  return samples;
}

void expect_permutation(const SampleOrder& order) {
  auto sorted = all_of(order);
  std::sort(sorted.begin(), sorted.end());
  ASSERT_EQ(sorted, all_of(SampleOrder::plain(order.size()))) << order.size() << " samples";
}

TEST(SampleOrder, OfAPlainOneIsTheIdentity) {
  EXPECT_EQ(all_of(SampleOrder::plain(4)), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(SampleOrder, OfADrawnOneIsAPermutationThatSeedPlusEpochDecides) {
  const auto order = all_of(SampleOrder::drawn(1000, 7, 3));
  expect_permutation(SampleOrder::drawn(1000, 7, 3));
  EXPECT_NE(order, all_of(SampleOrder::plain(1000)));
  EXPECT_EQ(order, all_of(SampleOrder::drawn(1000, 3, 7)));
  EXPECT_NE(order, all_of(SampleOrder::drawn(1000, 7, 4)));
}

TEST(SampleOrder, OfAComputedOneIsAPermutationOfAnySmallSet) {
  for (int64_t size = 0; size <= 600; ++size) {
    for (const uint64_t seed : {0U, 1U, 12345U}) {
      expect_permutation(SampleOrder::computed(size, seed, static_cast<int64_t>(seed % 7)));
    }
  }
  expect_permutation(SampleOrder::computed(1'000'003, 1, 2));
}

TEST(SampleOrder, OfAComputedOneChangesWithSeedAndEpoch) {
  const auto order = all_of(SampleOrder::computed(1000, 7, 3));
  EXPECT_EQ(order, all_of(SampleOrder::computed(1000, 7, 3)));
  EXPECT_NE(order, all_of(SampleOrder::computed(1000, 3, 7)));
  EXPECT_NE(order, all_of(SampleOrder::computed(1000, 7, 4)));
  EXPECT_NE(order, all_of(SampleOrder::computed(1000, 8, 3)));
}

// The order is in checkpoints by its name alone: what it is must not change.
TEST(SampleOrder, OfAComputedOneIsTheSameForEver) {
  EXPECT_EQ(all_of(SampleOrder::computed(10, 1, 0)),
            (std::vector<int64_t>{9, 8, 2, 7, 1, 0, 5, 3, 6, 4}));
}

// Chi squared of counts that are all expected alike, in standard deviations from its mean.
double deviation(const std::vector<int64_t>& counts) {
  const double mean = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0L)) /
                      static_cast<double>(counts.size());
  double chi_squared = 0;
  for (const int64_t count : counts) {
    chi_squared += std::pow(static_cast<double>(count) - mean, 2) / mean;
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (chi_squared - freedom) / std::sqrt(2 * freedom);
}

// With 10^9 samples, of which no list is made: where places go, how far neighbours are apart, and
// how two epochs differ, each against what a random order would give.
TEST(SampleOrder, OfAComputedOneLooksRandom) {
  constexpr int64_t kSamples = 1'000'000'000;
  constexpr int64_t kPlaces = 200'000;
  constexpr int64_t kBins = 64;
  const SampleOrder order = SampleOrder::computed(kSamples, 3, 0);
  const SampleOrder next = SampleOrder::computed(kSamples, 3, 1);
  const auto bin = [](int64_t sample) { return static_cast<size_t>(sample / (kSamples / kBins)); };
  const auto apart = [](int64_t a, int64_t b) { return (a - b + kSamples) % kSamples; };
  std::vector<int64_t> places(kBins);
  std::vector<int64_t> pairs(kBins * kBins);
  std::vector<int64_t> distances(kBins);
  std::vector<int64_t> epochs(kBins);
  for (int64_t place = 0; place + 1 < kPlaces; ++place) {
    const int64_t sample = order.at(place);
    const int64_t neighbour = order.at(place + 1);
    ++places[bin(sample)];
    ++pairs[bin(sample) * kBins + bin(neighbour)];
    ++distances[bin(apart(neighbour, sample))];
    ++epochs[bin(apart(next.at(place), sample))];
  }
  for (const auto& counts : {places, pairs, distances, epochs}) {
    EXPECT_LT(std::abs(deviation(counts)), 5);
  }
}

TEST(SampleOrder, HasNoPlaceBeyondItsEnd) {
  EXPECT_THROW(SampleOrder::computed(10, 1, 0).at(10), std::out_of_range);
  EXPECT_THROW(SampleOrder::computed(10, 1, 0).at(-1), std::out_of_range);
}

}  // namespace
}  // namespace phalanx
