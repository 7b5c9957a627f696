// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/numbers.h"
#include "trainer/base/user_error.h"
#include "trainer/data/prefetcher.h"

namespace phalanx {
namespace {

std::vector<std::vector<int64_t>> rest_of(BatchSource& source) {
  std::vector<std::vector<int64_t>> batches;
  while (const auto batch = source.next()) {
    batches.push_back(static_cast<const NumberBatch&>(*batch).numbers);
  }
  return batches;
}

LoaderConfig workers(int64_t count, int64_t prefetch = 2) {
  LoaderConfig config;
  config.num_workers = count;
  config.prefetch_batches = prefetch;
  return config;
}

BatchRequest batches_of(int64_t size) {
  BatchRequest request;
  request.batch_size = size;
  request.seed = 11;
  return request;
}

class LoaderTest : public testing::TestWithParam<int64_t> {};

TEST_P(LoaderTest, GivesTheSameBatchesAsNoWorkers) {
  const auto data = std::make_shared<Numbers>(103);
  const auto plain = load(data, workers(0), batches_of(4), true);
  const auto threaded = load(data, workers(GetParam(), 1), batches_of(4), true);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    plain->start_epoch(epoch, 0);
    threaded->start_epoch(epoch, 0);
    const auto expected = rest_of(*plain);
    EXPECT_EQ(expected.size(), 26U);
    EXPECT_EQ(rest_of(*threaded), expected);
    EXPECT_EQ(threaded->next(), nullptr);
  }
}

TEST_P(LoaderTest, ResumesInMidEpoch) {
  const auto data = std::make_shared<Numbers>(30);
  const auto source = load(data, workers(GetParam()), batches_of(4), true);
  source->start_epoch(2, 0);
  auto expected = rest_of(*source);
  expected.erase(expected.begin(), expected.begin() + 3);
  source->start_epoch(2, 12);
  EXPECT_EQ(rest_of(*source), expected);
}

TEST_P(LoaderTest, AnErrorSurfacesInOrderAndStays) {
  auto config = workers(GetParam());
  config.shuffle = false;
  const auto source =
      load(std::make_shared<Numbers>(40, std::set<int64_t>{9}), config, batches_of(4), true);
  source->start_epoch(0, 0);
  EXPECT_NE(source->next(), nullptr);
  EXPECT_NE(source->next(), nullptr);
  EXPECT_THROW(source->next(), std::runtime_error);
  EXPECT_THROW(source->next(), std::runtime_error);
  source->start_epoch(0, 12);  // Behind the broken sample all is well.
  EXPECT_EQ(rest_of(*source).size(), 7U);
}

TEST_P(LoaderTest, LeavesBrokenSamplesOutAndNothingMovesUp) {
  auto config = workers(GetParam());
  config.shuffle = false;
  config.max_broken = 7;
  const auto data = std::make_shared<Numbers>(16, std::set<int64_t>{0, 5, 8, 9, 10, 11, 15});
  const auto source = load(data, config, batches_of(4), true);
  EXPECT_EQ(source->max_broken(), 7);
  source->start_epoch(0, 0);
  std::vector<std::vector<int64_t>> whole;
  std::vector<std::string> broken;
  while (const auto batch = source->next()) {
    EXPECT_EQ(batch->counted_samples(), 4);
    whole.push_back(static_cast<const NumberBatch&>(*batch).numbers);
    if (!batch->counts) {
      EXPECT_EQ(batch->counted_tokens(), 0);
      whole.back().clear();
    }
    for (const BrokenSample& sample : batch->broken) broken.push_back(sample.message);
  }
  EXPECT_THAT(whole,
              testing::ElementsAre(std::vector<int64_t>{1, 2, 3}, std::vector<int64_t>{4, 6, 7},
                                   std::vector<int64_t>{}, std::vector<int64_t>{12, 13, 14}));
  EXPECT_THAT(broken, testing::ElementsAre("sample 0", "sample 5", "sample 8", "sample 9",
                                           "sample 10", "sample 11", "sample 15"));
}

TEST(Loader, EndsWhereNoSampleCanBeRead) {
  auto config = workers(0);
  config.max_broken = 100;
  const auto source =
      load(std::make_shared<Numbers>(3, std::set<int64_t>{0, 1, 2}), config, batches_of(4), true);
  source->start_epoch(0, 0);
  EXPECT_THROW(source->next(), BrokenSampleError);
}

TEST_P(LoaderTest, StopsAtAnyTime) {
  const auto data = std::make_shared<Numbers>(1000);
  for (int taken = 0; taken < 20; ++taken) {
    const auto source = load(data, workers(GetParam()), batches_of(3), true);
    source->start_epoch(0, 0);
    for (int i = 0; i < taken; ++i) EXPECT_NE(source->next(), nullptr);
    source->start_epoch(1, 0);
    EXPECT_NE(source->next(), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, LoaderTest, testing::Values(0, 1, 2, 5));

TEST(Loader, BeforeAnEpochHasStartedThereIsNothing) {
  EXPECT_EQ(load(std::make_shared<Numbers>(4), workers(2), batches_of(2), true)->next(), nullptr);
}

// 7 samples on 3 ranks: the last one goes to rank 0, and the others get the epoch's first again.
TEST(Loader, ARankForWhichNothingIsLeftTakesPartWithASampleThatDoesNotCount) {
  for (int64_t rank = 0; rank < 3; ++rank) {
    BatchRequest request = batches_of(2);
    request.rank = rank;
    request.world_size = 3;
    auto config = workers(0);
    config.shuffle = false;
    const auto source = load(std::make_shared<Numbers>(7), config, request, true);
    source->start_epoch(0, 0);
    EXPECT_TRUE(source->next()->counts);
    const auto last = source->next();
    EXPECT_EQ(last->counts, rank == 0);
    EXPECT_EQ(last->samples, 1);
    EXPECT_EQ(last->tokens, 1);
    EXPECT_EQ(last->counted_samples(), rank == 0 ? 1 : 0);
    EXPECT_EQ(last->counted_tokens(), rank == 0 ? 1 : 0);
    EXPECT_THAT(static_cast<const NumberBatch&>(*last).numbers,
                testing::ElementsAre(rank == 0 ? 6 : 0));
  }
}

TEST(Loader, ValidationKeepsItsOrderAndItsLastSamples) {
  auto config = workers(2);
  config.drop_last = true;
  const auto source = load(std::make_shared<Numbers>(5), config, batches_of(3), false);
  EXPECT_EQ(source->samples_per_epoch(), 5);
  EXPECT_EQ(source->batches_per_epoch(), 2);
  source->start_epoch(4, 0);
  EXPECT_THAT(rest_of(*source),
              testing::ElementsAre(std::vector<int64_t>{0, 1, 2}, std::vector<int64_t>{3, 4}));
}

/// Later samples are longer: sorted, the last one comes first.
struct Growing : Numbers {
  using Numbers::Numbers;
  std::optional<int64_t> length(int64_t index) const override { return index; }
};

// The samples of all ranks that count, by their numbers, and how many micro-batches a rank has.
std::pair<std::vector<int64_t>, std::set<size_t>> first_of_all_ranks(int64_t ranks, int64_t first,
                                                                     int64_t batch_size) {
  std::vector<int64_t> samples;
  std::set<size_t> batches;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    BatchRequest request = batches_of(batch_size);
    request.rank = rank;
    request.world_size = ranks;
    const auto source = load(std::make_shared<Growing>(7), workers(rank % 2), request, false);
    source->start_epoch(0, 0);
    const auto sorted = source->next()->sample_numbers;
    source->start_first(first);
    size_t count = 0;
    for (; const auto batch = source->next(); ++count) {
      EXPECT_EQ(batch->sample_numbers, static_cast<const NumberBatch&>(*batch).numbers);
      if (!batch->counts) continue;
      samples.insert(samples.end(), batch->sample_numbers.begin(), batch->sample_numbers.end());
    }
    batches.insert(count);
    source->start_epoch(0, 0);
    EXPECT_EQ(source->next()->sample_numbers, sorted) << "an epoch has its own order again";
    EXPECT_EQ(sorted.front(), 6 - rank);
  }
  std::ranges::sort(samples);
  return {samples, batches};
}

TEST(Loader, GivesTheFirstSamplesOfTheDataOnAnyRanks) {
  for (const int64_t ranks : {1, 2, 3, 4}) {
    for (int64_t first = 1; first < 10; ++first) {
      for (const int64_t batch_size : {1, 2, 5}) {
        const auto [samples, batches] = first_of_all_ranks(ranks, first, batch_size);
        std::vector<int64_t> expected(static_cast<size_t>(std::min<int64_t>(first, 7)));
        std::iota(expected.begin(), expected.end(), 0);
        EXPECT_EQ(samples, expected) << ranks << " ranks, " << batch_size << " a batch";
        EXPECT_THAT(batches, testing::SizeIs(1)) << "as many on each rank";
      }
    }
  }
}

// The samples of all ranks that count, of a spread over `size` samples.
std::vector<int64_t> spread_over_ranks(int64_t ranks, int64_t count, int64_t size) {
  std::vector<int64_t> samples;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    BatchRequest request = batches_of(2);
    request.rank = rank;
    request.world_size = ranks;
    const auto source = load(std::make_shared<Numbers>(size), workers(rank % 2), request, false);
    source->start_spread(count);
    int64_t batches = 0;
    for (; const auto batch = source->next(); ++batches) {
      if (!batch->counts) continue;
      samples.insert(samples.end(), batch->sample_numbers.begin(), batch->sample_numbers.end());
    }
    EXPECT_EQ(batches, (std::min(count, size) + 2 * ranks - 1) / (2 * ranks));
    source->start_epoch(0, 0);
    EXPECT_EQ(source->next()->sample_numbers.front(), rank) << "an epoch is whole again";
  }
  std::ranges::sort(samples);
  return samples;
}

TEST(Loader, SpreadsABoundedPassEvenlyOverItsFilesOnAnyRanks) {
  constexpr int64_t kSize = 120;  // three files of 60, 40 and 20 samples
  for (const int64_t ranks : {1, 2, 3}) {
    for (const int64_t count : {6, 12, 13, 60}) {
      const auto samples = spread_over_ranks(ranks, count, kSize);
      ASSERT_EQ(std::ssize(samples), count);
      EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), samples.size());
      const auto of_file = [&](int64_t begin, int64_t end) {
        return std::ranges::count_if(samples, [&](int64_t s) { return s >= begin && s < end; });
      };
      EXPECT_NEAR(static_cast<double>(of_file(0, 60)), static_cast<double>(count) / 2, 1);
      EXPECT_NEAR(static_cast<double>(of_file(60, 100)), static_cast<double>(count) / 3, 1);
      EXPECT_NEAR(static_cast<double>(of_file(100, 120)), static_cast<double>(count) / 6, 1);
    }
    EXPECT_EQ(std::ssize(spread_over_ranks(ranks, 200, 7)), 7) << "all, as they are fewer";
  }
}

TEST(Loader, RefusesToDropEverything) {
  auto config = workers(0);
  config.drop_last = true;
  EXPECT_THROW(load(std::make_shared<Numbers>(5), config, batches_of(6), true), UserError);
}

TEST(Loader, RefusesBatchesThatNoMemoryHolds) {
  constexpr int64_t kEndless = 1'000'000'000'000'000;
  const auto data = std::make_shared<Numbers>(2 * kEndless);
  EXPECT_THAT(
      [&] { load(data, workers(1), batches_of(kEndless), true); },
      testing::ThrowsMessage<UserError>(testing::AllOf(
          testing::StartsWith("training.batch_size 1000000000000000: a micro-batch of "
                              "1000000000000000 samples, 8 bytes each, takes 7629394531 MiB"),
          testing::HasSubstr("lower it"))));
  // A first sample that cannot be read tells nothing.
  const auto broken = std::make_shared<Numbers>(2 * kEndless, std::set<int64_t>{0});
  EXPECT_NE(load(broken, workers(1), batches_of(kEndless), true), nullptr);
}

TEST(Loader, TakesABatchOfAllThatThereIs) {
  const auto source = load(std::make_shared<Numbers>(5), workers(1), batches_of(1LL << 40), false);
  source->start_epoch(0, 0);
  EXPECT_EQ(rest_of(*source), (std::vector<std::vector<int64_t>>{{0, 1, 2, 3, 4}}));
}

TEST(Prefetcher, RunsTheWorkersAtOnceAndWaitsForThemToEnd) {
  std::latch both_running(2);
  const auto make = [&](int64_t) {
    both_running.arrive_and_wait();
    return std::make_unique<NumberBatch>();
  };
  Prefetcher prefetcher(make, 2, 2, 2);
  EXPECT_NE(prefetcher.next(), nullptr);
  EXPECT_NE(prefetcher.next(), nullptr);
}

TEST(Prefetcher, MakesNoMoreThanItsCapacityAhead) {
  std::atomic<int64_t> made = 0;
  {
    Prefetcher prefetcher(
        [&](int64_t) {
          ++made;
          return std::make_unique<NumberBatch>();
        },
        100, 3, 4);
    EXPECT_NE(prefetcher.next(), nullptr);
  }
  EXPECT_GE(made, 1);
  EXPECT_LE(made, 5);
}

}  // namespace
}  // namespace phalanx
