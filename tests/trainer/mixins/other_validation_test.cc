// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/other_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/early_stopping_mixin.h"
#include "trainer/mixins/validation_mixin.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Validated = Trainer<ValidationMixin, EarlyStoppingMixin, CheckpointMixin, Spy>;

class OtherValidation : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    spy = {};
  }

  // Trains to this step in micro-batches of so many of its steps' two samples; the validation data
  // has nine. Returns what is warned of.
  std::string train(int64_t steps, int64_t batch_size, std::optional<int64_t> max_batches,
                    const EarlyStoppingConfig& stopping = {},
                    const CheckpointConfig& checkpoint = {}) {
    const Parts parts{
        .task = std::make_shared<Regression>(TaskOptions{.data = {.validation_samples = 9}})};
    Validated trainer(make_setup(
        parts, {.max_steps = steps, .batch_size = batch_size, .global_batch_size = 2},
        {.name = "tiny", .exp_dir = run_.path().string()},
        {{"validation",
          {},
          config::write(ValidationConfig{.every_n_steps = 1, .max_batches = max_batches})},
         {"early_stopping", {}, config::write(stopping)},
         {"checkpoint", {}, config::write(checkpoint)},
         {"spy", {}, config::Node::map()}}));
    ::testing::internal::CaptureStderr();
    trainer.train();
    return ::testing::internal::GetCapturedStderr();
  }

  RunDir run_;
};

TEST_F(OtherValidation, IsToldAtTheResumeWithBothAmountsAndWhatKeepsTheEarlierOne) {
  const EarlyStoppingConfig stopping{.metric = "loss", .patience = 100};
  const CheckpointConfig best{.keep_best = KeepBest{}};
  EXPECT_EQ(train(2, 2, 2, stopping, best), "");
  EXPECT_EQ(train(4, 1, 2, stopping, best),
            "warning: validations measured 4 samples before this resume and measure 2 now "
            "(validation.max_batches, on each rank): checkpoint.keep_best and early_stopping will "
            "compare values of different samples; validation.max_batches=4 measures the earlier "
            "ones again\n");
  EXPECT_EQ(train(6, 1, 2, stopping, best), "") << "as the last start";
}

TEST_F(OtherValidation, ThatNoBatchesMeasureAgainIsToldHowToMeasureAll) {
  const CheckpointConfig best{.keep_best = KeepBest{}};
  train(2, 1, 3, {}, best);
  EXPECT_THAT(train(4, 2, 2, {}, best),
              AllOf(HasSubstr("measured 3 samples before this resume and measure 4 now"),
                    HasSubstr("checkpoint.keep_best will"),
                    HasSubstr("validation.max_batches=null measures all 9 on any number of ranks"),
                    Not(HasSubstr("early_stopping"))));
}

TEST_F(OtherValidation, IsNotToldWhereTheSamplesAreTheSame) {
  const CheckpointConfig best{.keep_best = KeepBest{}};
  train(2, 2, 2, {}, best);
  EXPECT_EQ(train(4, 1, 4, {}, best), "") << "as many";
  EXPECT_THAT(train(6, 1, std::nullopt, {}, best), HasSubstr("and measure 9 now"));
  EXPECT_EQ(train(8, 2, std::nullopt, {}, best), "") << "all of them";
  EXPECT_EQ(train(10, 2, 5, {}, best), "") << "all of them, too";
}

TEST_F(OtherValidation, IsNotToldWhereNothingIsCompared) {
  train(2, 2, 2);
  EXPECT_EQ(train(4, 1, 2), "");
}

}  // namespace
}  // namespace phalanx::tiny
