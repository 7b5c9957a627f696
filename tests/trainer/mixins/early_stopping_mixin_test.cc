// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/early_stopping_mixin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/validation_mixin.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Stopping = Trainer<ValidationMixin, EarlyStoppingMixin, CheckpointMixin, Spy>;

class EarlyEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    spy = {};
  }

  // Validated every two steps. With a rate of 0 the model stays as it is, and no loss is better.
  void train(const EarlyStoppingConfig& config) {
    Parts parts;
    parts.optimizer = std::make_shared<Descent>(0);
    trainer_ = std::make_unique<Stopping>(
        make_setup(parts, {.max_steps = 20, .batch_size = 4},
                   {.name = "tiny", .exp_dir = run_.path().string()},
                   {{"validation", {}, config::write(ValidationConfig{.every_n_steps = 2})},
                    {"early_stopping", {}, config::write(config)},
                    {"checkpoint", {}, config::write(CheckpointConfig{.save_every_n_steps = 100})},
                    {"spy", {}, config::Node::map()}}));
    trainer_->train();
  }

  RunDir run_;
  std::unique_ptr<Stopping> trainer_;
};

TEST_F(EarlyEnd, FinishesTheRunAndSavesIt) {
  train({.metric = "loss", .patience = 2});
  EXPECT_EQ(trainer_->state().step, 6) << "the first validation is the best";
  EXPECT_TRUE(trainer_->finished());
  EXPECT_THAT(trainer_->early_end(), HasSubstr("early_stopping.patience 2"));
  EXPECT_THAT(run_.checkpoints(), ElementsAre("step-00000006"));
}

TEST_F(EarlyEnd, DoesNotComeWithoutAMetric) {
  train({});
  EXPECT_EQ(trainer_->state().step, 20);
  EXPECT_EQ(trainer_->early_end(), "");
}

TEST_F(EarlyEnd, StaysWithAResumeUntilPatienceIsRaised) {
  train({.metric = "loss", .patience = 2});
  train({.metric = "loss", .patience = 2});
  EXPECT_EQ(trainer_->state().step, 6);
  EXPECT_TRUE(trainer_->finished());
  train({.metric = "loss", .patience = 3});
  EXPECT_EQ(trainer_->state().step, 8);
}

TEST_F(EarlyEnd, RefusesAMetricThatIsNoneBeforeTheFirstStep) {
  EXPECT_THAT([&] { train({.metric = "los"}); },
              ThrowsMessage<UserError>(HasSubstr(
                  "early_stopping.metric: validation gives no 'los'; it gives loss, twice")));
  EXPECT_THAT(spy.states, testing::IsEmpty());
}

}  // namespace
}  // namespace phalanx::tiny
