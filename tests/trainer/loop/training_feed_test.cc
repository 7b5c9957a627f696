// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/training_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/step/tiny_step.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The tiny data, which counts what it gives; samples of some batches cannot be read.
class Counted : public BatchSource {
 public:
  Counted(std::unique_ptr<BatchSource> inner, bool is_broken, int64_t max_broken)
      : inner_(std::move(inner)), is_broken_(is_broken), max_broken_(max_broken) {}

  int64_t samples_per_epoch() const override { return inner_->samples_per_epoch(); }
  int64_t batches_per_epoch() const override { return inner_->batches_per_epoch(); }
  std::string fingerprint() const override { return inner_->fingerprint(); }
  int64_t max_broken() const override { return max_broken_; }
  void start_epoch(int64_t epoch, int64_t consumed) override {
    inner_->start_epoch(epoch, consumed);
  }
  std::unique_ptr<Batch> next() override {
    auto batch = inner_->next();
    if (!batch) return batch;
    ++given;
    if (is_broken_) {
      --batch->samples;
      batch->broken.push_back({.source = "a.jsonl", .kind = "no JSON"});
    }
    return batch;
  }

  int64_t given = 0;

 private:
  std::unique_ptr<BatchSource> inner_;
  bool is_broken_;
  int64_t max_broken_;
};

/// A feed of the tiny data's ten samples, in micro-batches of two.
struct Fed : TinyStep {
  explicit Fed(const TrainingConfig& config, bool is_broken = false, int64_t max_broken = 0)
      : TinyStep({}, /*batch_size=*/2), training(config) {
    auto source = std::make_unique<Counted>(std::move(data), is_broken, max_broken);
    counted = source.get();
    feed = std::make_unique<TrainingFeed>(context, training, std::move(source));
    state.step = 1;
    feed->start_epoch();
  }

  // Takes the next step of two micro-batches, and ends it.
  bool take() {
    ongoing.begin();
    if (!feed->take(ongoing, 2)) return false;
    ++state.step;
    state.samples += ongoing.result.samples;
    state.epoch_samples += ongoing.result.samples;
    return true;
  }

  TrainingConfig training;
  Counted* counted = nullptr;
  OngoingStep ongoing;
  std::unique_ptr<TrainingFeed> feed;
};

TEST(TrainingFeed, FetchesTheNextStepWhileThisOneRuns) {
  Fed fed({.batch_size = 2});
  ASSERT_TRUE(fed.take());
  EXPECT_EQ(fed.ongoing.micro_batches.size(), 2u);
  EXPECT_EQ(fed.ongoing.result.samples, 4);
  EXPECT_EQ(fed.counted->given, 4);
}

TEST(TrainingFeed, EndsWithTheEpoch) {
  Fed fed({.batch_size = 2});
  std::vector<size_t> sizes;
  while (!fed.feed->epoch_is_over() && fed.take())
    sizes.push_back(fed.ongoing.micro_batches.size());
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1));
  EXPECT_TRUE(fed.feed->epoch_is_over());
  EXPECT_FALSE(fed.take());
}

TEST(TrainingFeed, FetchesNoStepBehindALimit) {
  Fed fed({.max_samples = 4, .batch_size = 2});
  ASSERT_TRUE(fed.take());
  EXPECT_EQ(fed.counted->given, 2);
}

TEST(TrainingFeed, DropsAStepThatDoesNotCome) {
  Fed fed({.batch_size = 2});
  ASSERT_TRUE(fed.take());
  fed.feed->drop();
  ASSERT_TRUE(fed.take());
  EXPECT_EQ(fed.ongoing.micro_batches.size(), 1u) << "the second step has gone";
}

TEST(TrainingFeed, CountsBrokenSamplesUntilThereAreTooMany) {
  Fed fed({.batch_size = 2}, /*is_broken=*/true, /*max_broken=*/3);
  ASSERT_TRUE(fed.take());
  EXPECT_EQ(fed.ongoing.result.broken.size(), 2u);
  EXPECT_EQ(fed.ongoing.result.samples, 4) << "their places stay empty";
  EXPECT_EQ(fed.feed->broken().count(), 2);
  try {
    fed.take();
    FAIL() << "four are too many";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("broken samples: 4, while max_broken allows 3"));
    EXPECT_THAT(error.what(), HasSubstr("4 of 'a.jsonl' (no JSON)"));
  }
}

}  // namespace
}  // namespace phalanx::tiny
