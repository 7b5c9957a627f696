// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/step_feed.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/stop_signal.h"
#include "trainer/loop/save_signal.h"

namespace phalanx {
namespace {

struct NoTensors : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }
};

// Batches of 2 samples and 5 tokens, so many of them.
StepFeed::Fetch batches(int64_t count) {
  return [left = count]() mutable -> std::unique_ptr<Batch> {
    if (left-- == 0) return nullptr;
    auto batch = std::make_unique<NoTensors>();
    batch->samples = 2;
    batch->tokens = 5;
    return batch;
  };
}

std::unique_ptr<Batch> no_data() { throw std::runtime_error("a file is gone"); }

TEST(StepFeed, GivesTheStepThatWasPrepared) {
  StepFeed feed;
  const auto fetch = batches(3);
  feed.prepare(Ranks(), 2, fetch);
  ASSERT_TRUE(feed.is_prepared());
  const FedStep step = feed.take(Ranks());
  EXPECT_FALSE(feed.is_prepared());
  EXPECT_EQ(step.micro_batches.size(), 2);
  EXPECT_EQ(step.counts.samples, 4);
  EXPECT_EQ(step.counts.tokens, 10);
}

TEST(StepFeed, GivesAnEmptyStepAtTheEndOfTheData) {
  StepFeed feed;
  feed.prepare(Ranks(), 2, batches(0));
  const FedStep step = feed.take(Ranks());
  EXPECT_TRUE(step.micro_batches.empty());
  EXPECT_EQ(step.counts.samples, 0);
}

TEST(StepFeed, AnErrorOfTheDataIsThatOfItsStep) {
  StepFeed feed;
  EXPECT_NO_THROW(feed.prepare(
      Ranks(), 1, []() -> std::unique_ptr<Batch> { throw std::runtime_error("a file is gone"); }));
  EXPECT_THROW(feed.take(Ranks()), std::runtime_error);
}

TEST(StepFeed, ADroppedStepIsForgotten) {
  StepFeed feed;
  feed.drop();
  feed.prepare(Ranks(), 1, batches(1));
  feed.drop();
  EXPECT_FALSE(feed.is_prepared());
  feed.prepare(Ranks(), 2, batches(2));
  EXPECT_EQ(feed.take(Ranks()).counts.samples, 4);
}

TEST(StepFeed, CountsOfAllRanksComeWithTheStepAndItsSignals) {
  const auto body = [](World& world) {
    StopSignal::install();
    SaveSignal::install();
    const Ranks& ranks = world.ranks();
    StepFeed feed;
    feed.prepare(ranks, 1, batches(ranks.rank()));
    require(feed.take(ranks).counts.samples == 2, "rank 1 alone has some");
    if (ranks.is_first()) std::raise(SIGTERM);
    feed.prepare(ranks, 2, batches(2));
    require(!feed.stops(ranks), "it is still under way");
    require(feed.take(ranks).counts.tokens == 20, "both have two batches");
    require(feed.stops(ranks), "the signal came with the counts");
    feed.prepare(ranks, 1, batches(1));
    feed.drop();
    require(world.ranks().all_gather("still there").size() == 2, "nothing is left under way");
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

TEST(StepFeed, TheDatasErrorIsOfOneRankAndEndsAll) {
  const auto body = [](World& world) {
    const Ranks& ranks = world.ranks();
    StepFeed feed;
    feed.prepare(ranks, 1, ranks.is_first() ? StepFeed::Fetch(no_data) : batches(1));
    try {
      feed.take(ranks);
    } catch (const CommunicationError&) {
      require(!ranks.is_first(), "the other one only hears of it");
      return;
    } catch (const std::runtime_error&) {
      require(ranks.is_first(), "it is that of rank 0");
      return;
    }
    require(false, "both are ended");
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

TEST(StepFeed, ASignalComesBeforeAnErrorOfTheDataBehindIt) {
  const auto body = [](World& world) {
    StopSignal::install();
    const Ranks& ranks = world.ranks();
    StepFeed feed;
    if (!ranks.is_first()) std::raise(SIGTERM);
    feed.prepare(ranks, 1, ranks.is_first() ? StepFeed::Fetch(no_data) : batches(1));
    feed.take(ranks);
    require(feed.stops(ranks), "both stop, and save");
  };
  EXPECT_EQ(in_ranks(2, body).message, "");
}

}  // namespace
}  // namespace phalanx
