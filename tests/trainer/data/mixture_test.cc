// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "tests/trainer/data/numbers.h"
#include "trainer/data/loader.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

std::shared_ptr<const Mixture> mixture_of(std::vector<MixturePart> parts) {
  int64_t samples = 0;
  for (const MixturePart& part : parts) samples += part.samples;
  return std::make_shared<Mixture>(std::make_shared<Numbers>(samples), std::move(parts));
}

std::vector<int64_t> numbers_of(const Batch& batch) {
  return static_cast<const NumberBatch&>(batch).numbers;
}

// All samples of an epoch, in the parts' order.
std::vector<int64_t> epoch_of(const Mixture& mixture, int64_t epoch, std::optional<uint64_t> seed) {
  std::vector<int64_t> indices(static_cast<size_t>(mixture.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return numbers_of(*mixture.of_epoch(epoch, seed)->batch(indices));
}

TEST(SamplesByShare, SumToTheTotal) {
  EXPECT_THAT(samples_by_share({1, 1}, 10), ElementsAre(5, 5));
  EXPECT_THAT(samples_by_share({2, 1}, 10), ElementsAre(7, 3));
  EXPECT_THAT(samples_by_share({0.1, 0.1, 0.1}, 10), ElementsAre(4, 3, 3));
  EXPECT_THAT(samples_by_share({1e-9, 1}, 10), ElementsAre(0, 10));
}

TEST(Mixture, HasItsPartsInTheirProportions) {
  const auto mixture = mixture_of({{.samples = 4, .per_epoch = 2}, {.samples = 3, .per_epoch = 5}});
  EXPECT_EQ(mixture->size(), 7);
  EXPECT_THAT(epoch_of(*mixture, 0, {}), ElementsAre(0, 1, 4, 5, 6, 4, 5));
  EXPECT_THAT(epoch_of(*mixture, 1, {}), ElementsAre(2, 3, 6, 4, 5, 6, 4));
  EXPECT_THAT(epoch_of(*mixture, 2, {}), ElementsAre(0, 1, 5, 6, 4, 5, 6));
}

// Property: however epochs cut it, each part shows all its samples before it shows one again.
TEST(Mixture, ShowsASampleOnceBeforeItShowsItAgain) {
  const std::vector<MixturePart> parts{{.samples = 7, .per_epoch = 3},
                                       {.samples = 5, .per_epoch = 5},
                                       {.samples = 3, .per_epoch = 10}};
  const auto mixture = mixture_of(parts);
  std::vector<std::vector<int64_t>> shown(parts.size());
  for (int64_t epoch = 0; epoch < 21; ++epoch) {
    const std::vector<int64_t> samples = epoch_of(*mixture, epoch, 5);
    auto next = samples.begin();
    for (size_t part = 0; part < parts.size(); ++part) {
      shown[part].insert(shown[part].end(), next, next + parts[part].per_epoch);
      next += parts[part].per_epoch;
    }
  }
  int64_t begin = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    const int64_t samples = parts[part].samples;
    for (size_t place = 0; place + samples <= shown[part].size(); place += samples) {
      std::vector<int64_t> pass(shown[part].begin() + place, shown[part].begin() + place + samples);
      std::sort(pass.begin(), pass.end());
      for (int64_t i = 0; i < samples; ++i) EXPECT_EQ(pass[i], begin + i) << "part " << part;
    }
    begin += samples;
  }
}

TEST(Mixture, OrdersEachPassAnew) {
  const auto mixture = mixture_of({{.samples = 100, .per_epoch = 100}});
  EXPECT_NE(epoch_of(*mixture, 0, 5), epoch_of(*mixture, 1, 5));
  EXPECT_NE(epoch_of(*mixture, 0, 5), epoch_of(*mixture, 0, 6));
  EXPECT_EQ(epoch_of(*mixture, 0, 5), epoch_of(*mixture, 0, 5));
}

TEST(Mixture, IsNamedByItsContentAndItsProportions) {
  const auto one = mixture_of({{.samples = 4, .per_epoch = 2}});
  EXPECT_EQ(one->fingerprint(), mixture_of({{.samples = 4, .per_epoch = 2}})->fingerprint());
  EXPECT_NE(one->fingerprint(), mixture_of({{.samples = 4, .per_epoch = 3}})->fingerprint());
}

TEST(Mixture, RefusesPartsThatAreNotTheWhole) {
  const auto whole = std::make_shared<Numbers>(5);
  EXPECT_THROW(Mixture(whole, {}), std::invalid_argument);
  EXPECT_THROW(Mixture(whole, {{.samples = 4, .per_epoch = 1}}), std::invalid_argument);
  EXPECT_THROW(Mixture(whole, {{.samples = 5, .per_epoch = 0}}), std::invalid_argument);
}

constexpr int64_t kGlobalBatch = 24;

// The global batches of an epoch from `consumed` samples on, each sorted, of all ranks together.
std::vector<std::vector<int64_t>> global_batches(int64_t ranks, int64_t workers, int64_t epoch,
                                                 int64_t consumed) {
  const auto mixture = mixture_of({{.samples = 150, .per_epoch = 70},
                                   {.samples = 30, .per_epoch = 100},
                                   {.samples = 64, .per_epoch = 64}});
  LoaderConfig config;
  config.num_workers = workers;
  std::vector<std::vector<int64_t>> batches;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    BatchRequest request;
    request.batch_size = kGlobalBatch / ranks;
    request.rank = rank;
    request.world_size = ranks;
    request.seed = 3;
    const auto source = load(mixture, config, request, true);
    source->start_epoch(epoch, consumed);
    for (size_t i = 0; const auto batch = source->next(); ++i) {
      if (batches.size() <= i) batches.emplace_back();
      if (!batch->counts) continue;
      const std::vector<int64_t> numbers = numbers_of(*batch);
      batches[i].insert(batches[i].end(), numbers.begin(), numbers.end());
    }
  }
  for (auto& batch : batches) std::sort(batch.begin(), batch.end());
  return batches;
}

TEST(Mixture, IsOneSequenceOverAnyRanksAndWorkers) {
  for (const int64_t epoch : {0, 3}) {
    const auto expected = global_batches(1, 0, epoch, 0);
    EXPECT_EQ(expected.size(), 10);
    for (const int64_t ranks : {1, 2, 3, 4, 8}) {
      for (const int64_t workers : {0, 1, 3}) {
        EXPECT_EQ(global_batches(ranks, workers, epoch, 0), expected)
            << ranks << " ranks, " << workers << " workers";
      }
    }
  }
}

TEST(Mixture, GoesOnFromAnyStepOverAnyRanks) {
  const auto all = global_batches(1, 0, 2, 0);
  for (size_t step = 0; step < all.size(); ++step) {
    const std::vector<std::vector<int64_t>> rest(all.begin() + static_cast<int64_t>(step),
                                                 all.end());
    for (const int64_t ranks : {1, 2, 3, 4, 8}) {
      const auto consumed = static_cast<int64_t>(step) * kGlobalBatch;
      EXPECT_EQ(global_batches(ranks, 2, 2, consumed), rest) << ranks << " ranks from " << step;
    }
  }
}

}  // namespace
}  // namespace phalanx
