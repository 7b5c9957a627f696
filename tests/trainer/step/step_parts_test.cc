// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/loop/tiny.h"
#include "tests/trainer/loop/two_optimizers.h"
#include "trainer/api/parallel_engine.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

StepSetup setup_of(const Parts& parts) {
  return {.task_model = TaskModel(parts.task, parts.model), .optimizers = {optimizer_part(parts)}};
}

/// An engine whose rank holds the first element of each parameter.
class FirstElements : public ParallelEngine {
 public:
  Loss run(c10::function_ref<Loss()> forward, bool) override { return forward(); }
  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool) override {
    return forward();
  }
  NamedParameter local(const NamedParameter& parameter) const override {
    NamedParameter part = parameter;
    part.tensor = parameter.tensor.detach().flatten().narrow(0, 0, 1);
    return part;
  }
};

std::vector<std::string> names_of(const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter.name);
  return names;
}

TEST(StepParts, BindTheGroupsAsThisRankHoldsThem) {
  const Parts chosen;
  StepParts parts(setup_of(chosen));
  parts.group_parameters();
  EXPECT_THAT(parts.optimizers().front().group_summaries, SizeIs(2)) << "with decay and without";
  parts.wrap(parts.task_model().wrapped_by(std::make_shared<FirstElements>()));
  parts.bind_optimizers(true);
  EXPECT_THAT(names_of(parts.parameters()), ElementsAre("weight", "bias"));
  ASSERT_THAT(chosen.optimizer->groups, SizeIs(2));
  for (const auto& group : chosen.optimizer->groups) {
    for (const auto& parameter : group.parameters) EXPECT_EQ(parameter.tensor.numel(), 1);
  }
  EXPECT_FALSE(parts.late_verdict()) << "the host waits for the CPU anyway";
}

TEST(StepParts, GiveEachOfTwoOptimizersItsParameters) {
  const TwoOptimizers two;
  StepSetup setup = setup_of({});
  setup.optimizers = two.make_parts();
  StepParts parts(std::move(setup));
  parts.group_parameters();
  parts.bind_optimizers(true);
  EXPECT_THAT(names_of(parts.optimizer("critic").parameters), ElementsAre("bias"));
  EXPECT_THAT(names_of(parts.optimizer("generator").parameters), ElementsAre("weight"));
  EXPECT_EQ(two.critic->groups.front().parameters.front().name, "bias");
  EXPECT_THAT(parts.optimizer_state(), SizeIs(2));
  EXPECT_THROW(parts.optimizer("judge"), std::logic_error);
  EXPECT_THROW(parts.optimizer(""), std::logic_error);
}

TEST(StepParts, HaveNoOptimizerWhereNothingIsTrained) {
  StepSetup setup = setup_of({});
  setup.optimizers.clear();
  const StepParts parts(std::move(setup));
  EXPECT_THROW(parts.optimizer_state(), std::logic_error);
  EXPECT_TRUE(parts.optimizers().empty());
}

TEST(StepParts, InDoublePrecisionTakeInputsInIt) {
  const Parts chosen;
  EXPECT_FALSE(StepParts(setup_of(chosen)).input_dtype());
  StepSetup setup = setup_of(chosen);
  setup.double_precision = true;
  StepParts parts(std::move(setup));
  EXPECT_EQ(parts.input_dtype(), at::kDouble);
  EXPECT_EQ(parts.model().as<Regressor>()->dtype(), at::kDouble);
}

TEST(StepParts, HaveALossScaleWhereMixedPrecisionNeedsOne) {
  StepParts parts(setup_of({}));
  parts.use_mixed_precision(at::kBFloat16, std::nullopt);
  EXPECT_FALSE(parts.scaler());
  EXPECT_EQ(parts.task_model().autocast()->dtype, at::kBFloat16);
  parts.use_mixed_precision(at::kHalf, LossScaling{.init_scale = 32});
  EXPECT_EQ(parts.scaler()->current_scale(), 32);
}

}  // namespace
}  // namespace phalanx::tiny
