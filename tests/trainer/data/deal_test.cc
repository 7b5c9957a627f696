// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/deal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int64_t> all_of_rank(const Deal& deal, const SampleOrder& order, int64_t consumed) {
  std::vector<int64_t> samples;
  for (int64_t batch = 0; batch < deal.batches_after(consumed); ++batch) {
    const auto indices = deal.indices(order, consumed, batch);
    // All ranks have as many; only in the last one may nothing be left.
    EXPECT_TRUE(!indices.empty() || batch + 1 == deal.batches_after(consumed));
    samples.insert(samples.end(), indices.begin(), indices.end());
  }
  return samples;
}

// Samples [begin, end) of an order, sorted.
std::vector<int64_t> sorted_part(const SampleOrder& order, int64_t begin, int64_t end) {
  std::vector<int64_t> part;
  for (int64_t place = begin; place < end; ++place) part.push_back(order.at(place));
  std::sort(part.begin(), part.end());
  return part;
}

Deal random_deal(std::mt19937& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  return {.samples = draw(1, 200),
          .batch_size = draw(1, 9),
          .rank = 0,
          .world_size = draw(1, 7),
          .drop_last = draw(0, 1) == 1};
}

TEST(Deal, EverySampleComesOnceOverAllRanks) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Deal deal = random_deal(random);
    const auto order = SampleOrder::drawn(deal.samples, 5, round);
    std::vector<int64_t> dealt;
    for (deal.rank = 0; deal.rank < deal.world_size; ++deal.rank) {
      const auto mine = all_of_rank(deal, order, 0);
      dealt.insert(dealt.end(), mine.begin(), mine.end());
    }
    EXPECT_EQ(static_cast<int64_t>(dealt.size()), deal.samples_per_epoch());
    std::sort(dealt.begin(), dealt.end());
    EXPECT_EQ(dealt, sorted_part(order, 0, deal.samples_per_epoch()));
  }
}

TEST(Deal, DropLastLeavesOutOnlyAnIncompleteGlobalBatch) {
  const Deal deal{.samples = 25, .batch_size = 3, .rank = 1, .world_size = 4, .drop_last = true};
  EXPECT_EQ(deal.samples_per_epoch(), 24);
  EXPECT_EQ(deal.batches_after(0), 2);
  EXPECT_EQ(deal.batches_after(12), 1);
  EXPECT_EQ(deal.batches_after(24), 0);
}

TEST(Deal, RanksDifferByAtMostOneSampleAtTheEnd) {
  Deal deal{.samples = 7, .batch_size = 2, .rank = 0, .world_size = 3, .drop_last = false};
  const auto order = SampleOrder::plain(7);
  EXPECT_THAT(all_of_rank(deal, order, 0), ElementsAre(0, 3, 6));
  deal.rank = 1;
  EXPECT_THAT(all_of_rank(deal, order, 0), ElementsAre(1, 4));
  deal.rank = 2;
  EXPECT_THAT(all_of_rank(deal, order, 0), ElementsAre(2, 5));
}

TEST(Deal, GlobalBatchIsTheSameSetAtAnyWorldSize) {
  const int64_t global_batch = 12;
  const auto order = SampleOrder::drawn(100, 3, 1);
  for (const int64_t world : {1, 2, 3, 4, 6, 12}) {
    for (int64_t batch = 0; batch < 9; ++batch) {
      std::vector<int64_t> samples;
      for (int64_t rank = 0; rank < world; ++rank) {
        const Deal deal{.samples = 100,
                        .batch_size = global_batch / world,
                        .rank = rank,
                        .world_size = world,
                        .drop_last = false};
        const auto mine = deal.indices(order, 0, batch);
        samples.insert(samples.end(), mine.begin(), mine.end());
      }
      std::sort(samples.begin(), samples.end());
      const int64_t first = batch * global_batch;
      EXPECT_EQ(samples, sorted_part(order, first, std::min<int64_t>(first + global_batch, 100)));
    }
  }
}

TEST(Deal, ResumeContinuesTheSequenceAtAnyGlobalBatch) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    Deal deal = random_deal(random);
    deal.rank = round % deal.world_size;
    const auto order = SampleOrder::computed(deal.samples, 9, 0);
    const int64_t global_batch = deal.batch_size * deal.world_size;
    for (int64_t done = 0; done <= deal.batches_after(0); ++done) {
      const int64_t consumed = std::min(done * global_batch, deal.samples_per_epoch());
      for (int64_t batch = 0; batch < deal.batches_after(consumed); ++batch) {
        EXPECT_EQ(deal.indices(order, consumed, batch), deal.indices(order, 0, done + batch));
      }
      EXPECT_EQ(deal.batches_after(consumed), std::max<int64_t>(0, deal.batches_after(0) - done));
    }
  }
}

TEST(Deal, ResumeAtAnyCountAndAnotherWorldSizeDealsOutExactlyTheRest) {
  const auto order = SampleOrder::computed(50, 4, 2);
  for (int64_t consumed = 0; consumed <= 50; ++consumed) {
    std::vector<int64_t> rest;
    Deal deal{.samples = 50, .batch_size = 2, .rank = 0, .world_size = 3, .drop_last = false};
    for (; deal.rank < deal.world_size; ++deal.rank) {
      const auto mine = all_of_rank(deal, order, consumed);
      rest.insert(rest.end(), mine.begin(), mine.end());
    }
    std::sort(rest.begin(), rest.end());
    EXPECT_EQ(rest, sorted_part(order, consumed, 50));
  }
}

TEST(Deal, ARankBeyondTheLastSampleTakesPartWithNothing) {
  const Deal deal{.samples = 2, .batch_size = 4, .rank = 3, .world_size = 4, .drop_last = false};
  EXPECT_EQ(deal.batches_after(0), 1);
  EXPECT_THAT(deal.indices(SampleOrder::plain(2), 0, 0), IsEmpty());
}

}  // namespace
}  // namespace phalanx
