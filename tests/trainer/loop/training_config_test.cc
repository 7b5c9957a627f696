// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/training_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "trainer/api/state.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// Every mistake in a `training` section.
std::string mistakes(const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(yaml, "test.yaml", diagnostics);
  config::resolve(config::declaration<TrainingConfig>(), std::move(tree), diagnostics);
  return diagnostics.text();
}

TEST(TrainingConfig, ARunNeedsAnEnd) {
  EXPECT_THAT(mistakes("{batch_size: 2}"), HasSubstr("the run has no end"));
  for (const char* limit : {"max_steps", "max_epochs", "max_samples", "max_seconds"}) {
    EXPECT_THAT(mistakes(std::string("{") + limit + ": 2}"), IsEmpty());
    EXPECT_THAT(mistakes(std::string("{") + limit + ": 0}"), HasSubstr("out of range"));
  }
}

TEST(TrainingConfig, ClipsInOneWay) {
  EXPECT_THAT(mistakes("{max_steps: 2, clip_grad_norm: 1.0, clip_grad_value: 1.0}"),
              HasSubstr("not both"));
  EXPECT_THAT(mistakes("{max_steps: 2, clip_grad_norm: 0.0}"), HasSubstr("out of range"));
  EXPECT_THAT(mistakes("{max_steps: 2, clip_grad_value: -1.0}"), HasSubstr("out of range"));
}

TEST(TrainingConfig, AccumulationIsGivenOrFollows) {
  EXPECT_EQ((TrainingConfig{.batch_size = 4}).accumulation(1), 1);
  EXPECT_EQ((TrainingConfig{.batch_size = 4, .gradient_accumulation_steps = 3}).accumulation(1), 3);
  EXPECT_EQ((TrainingConfig{.batch_size = 4, .global_batch_size = 16}).accumulation(1), 4);
  EXPECT_EQ((TrainingConfig{.batch_size = 4, .global_batch_size = 16}).accumulation(2), 2);
  EXPECT_EQ(
      (TrainingConfig{.batch_size = 4, .global_batch_size = 16, .gradient_accumulation_steps = 4})
          .accumulation(1),
      4);
}

TEST(TrainingConfig, AGlobalBatchMustComeOutWhole) {
  EXPECT_THAT([] { (TrainingConfig{.batch_size = 4, .global_batch_size = 18}).accumulation(1); },
              ThrowsMessage<UserError>(HasSubstr("18 is not a multiple of 4")));
  EXPECT_THAT([] { (TrainingConfig{.batch_size = 4, .global_batch_size = 12}).accumulation(2); },
              ThrowsMessage<UserError>(HasSubstr("12 is not a multiple of 8")));
  EXPECT_THAT(
      [] {
        (TrainingConfig{.batch_size = 4, .global_batch_size = 16, .gradient_accumulation_steps = 2})
            .accumulation(1);
      },
      ThrowsMessage<UserError>(HasSubstr("needs 4 micro-batches")));
}

TEST(TrainingConfig, AnyLimitEndsTheRun) {
  const TrainingConfig config{.max_steps = 5,
                              .max_epochs = 2,
                              .max_samples = 100,
                              .max_seconds = config::Interval{std::chrono::milliseconds(1500)}};
  EXPECT_FALSE(config.limit_reached({.epoch = 1, .step = 4, .samples = 99, .elapsed = 1.4}));
  EXPECT_TRUE(config.limit_reached({.step = 5}));
  EXPECT_TRUE(config.limit_reached({.epoch = 2}));
  EXPECT_TRUE(config.limit_reached({.samples = 100}));
  EXPECT_TRUE(config.limit_reached({.elapsed = 1.5}));
}

TEST(TrainingConfig, KeepsTheGlobalBatchOfARunOnAnotherNumberOfRanks) {
  const TrainingConfig config{.batch_size = 4};
  EXPECT_EQ(config.accumulation_keeping(16, 1), 4);
  EXPECT_EQ(config.accumulation_keeping(16, 2), 2);
  EXPECT_EQ(config.accumulation_keeping(16, 4), 1);
  EXPECT_THAT(
      [&] { config.accumulation_keeping(16, 8); },
      ThrowsMessage<UserError>(HasSubstr("8 ranks with training.batch_size=4 make it 32. Set "
                                         "training.batch_size to one that fits: 2, 1")));
  EXPECT_THAT([&] { config.accumulation_keeping(16, 3); },
              ThrowsMessage<UserError>(HasSubstr("which 3 ranks cannot share evenly")));
}

TEST(TrainingConfig, AsksForNoMoreChangesThanKeepTheGlobalBatch) {
  const auto advice = [](TrainingConfig config, int64_t ranks) -> std::string {
    try {
      config.accumulation_keeping(16, ranks);
    } catch (const UserError& error) {
      const std::string text = error.what();
      return text.substr(text.find("Set "));
    }
    return "none";
  };
  EXPECT_EQ(advice({.batch_size = 5}, 2), "Set training.batch_size to one that fits: 8, 4, 2, 1");
  EXPECT_EQ(advice({.batch_size = 4, .gradient_accumulation_steps = 1}, 2),
            "Set training.gradient_accumulation_steps=null");
  EXPECT_EQ(advice({.batch_size = 5, .gradient_accumulation_steps = 1}, 2),
            "Set training.gradient_accumulation_steps=null and training.batch_size to one that "
            "fits: 8, 4, 2, 1");
  EXPECT_EQ(advice({.batch_size = 4, .global_batch_size = 32}, 2),
            "Set training.global_batch_size=16");
  EXPECT_EQ(advice({.batch_size = 5, .global_batch_size = 20}, 2),
            "Set training.global_batch_size=16 and training.batch_size to one that fits: 8, 4, 2, "
            "1");
  // What it asks for is enough.
  EXPECT_EQ((TrainingConfig{.batch_size = 8}).accumulation_keeping(16, 2), 1);
  EXPECT_EQ((TrainingConfig{.batch_size = 4}).accumulation_keeping(16, 2), 2);
}

// Once looked for one by one: minutes for a large batch.
TEST(TrainingConfig, NamesTheBatchSizesNextToItsOwnOfThoseThatFit) {
  const auto fitting = [](int64_t batch_size, int64_t global_batch) -> std::string {
    try {
      (TrainingConfig{.batch_size = batch_size}).accumulation_keeping(global_batch, 1);
    } catch (const UserError& error) {
      const std::string text = error.what();
      return text.substr(text.rfind(": ") + 2);
    }
    return "no error";
  };
  EXPECT_EQ(fitting(5, 36), "36, 18, 12, 9, 6, 4, 3, 2, 1");
  EXPECT_EQ(fitting(3, kMaxSamplesAStep), "512, 256, 128, 64, 32, 16, 8, 4, 2, 1");
  EXPECT_EQ(fitting(1000, kMaxSamplesAStep),
            "16384, 8192, 4096, 2048, 1024, 512, 256, 128, 64, 32");
  EXPECT_EQ(
      fitting(2147483647, kMaxSamplesAStep),
      "2147483648, 1073741824, 536870912, 268435456, 134217728, 67108864, 33554432, 16777216, "
      "8388608, 4194304");
  EXPECT_EQ(fitting(5, 2147483647), "2147483647, 1") << "a prime";
}

TEST(TrainingConfig, AStepHoldsNoMoreSamplesThanCanBeCounted) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const auto error_of = [](const TrainingConfig& config, int64_t ranks) -> std::string {
    try {
      config.accumulation(ranks);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of({.batch_size = kMaxSamplesAStep / 2}, 2), "no error");
  const std::string bound = "a step may hold, 2147483648";
  EXPECT_THAT(error_of({.batch_size = kMaxSamplesAStep}, 2), HasSubstr(bound));
  EXPECT_THAT(error_of({.batch_size = kHuge}, 3), HasSubstr(bound));
  EXPECT_THAT(error_of({.batch_size = 4, .gradient_accumulation_steps = kHuge}, 2),
              HasSubstr(bound));
  EXPECT_THAT(error_of({.batch_size = 1, .global_batch_size = kMaxSamplesAStep + 1}, 1),
              HasSubstr(bound));
  EXPECT_THAT(error_of({.batch_size = kHuge, .global_batch_size = 4}, 2), HasSubstr(bound));
}

TEST(TrainingConfig, DoesNotAdjustAnAccumulationThatIsGiven) {
  const TrainingConfig config{.batch_size = 4, .gradient_accumulation_steps = 2};
  EXPECT_EQ(config.accumulation_keeping(16, 2), 2);
  EXPECT_THROW(config.accumulation_keeping(16, 1), UserError);
}

TEST(TrainingConfig, AResumeMayMoveTheEndButNotTheSteps) {
  const auto& declaration = config::declaration<TrainingConfig>();
  const config::Node resolved = config::write(TrainingConfig{.max_steps = 1});
  for (const char* field : {"max_steps", "max_epochs", "max_samples", "max_seconds"}) {
    EXPECT_TRUE(declaration.resume_may_change(field, resolved)) << field;
  }
  for (const char* field : {"seed", "clip_grad_norm", "clip_grad_value"}) {
    EXPECT_FALSE(declaration.resume_may_change(field, resolved)) << field;
  }
}

}  // namespace
}  // namespace phalanx
