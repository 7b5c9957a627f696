// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/pass_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "tests/trainer/step/tiny_step.h"
#include "trainer/base/user_error.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST(PassErrors, PassOnWhatAPassReturns) {
  TinyStep step;
  const auto weights = [](TaskModel& model) { return weights_of(model.model()).size(); };
  EXPECT_EQ(step.errors.explaining({.activity = "forward"}, weights), 4u);
  EXPECT_EQ(step.errors.explaining_memory("update", [] { return 3; }), 3);
}

TEST(PassErrors, SayWhereMemoryHasEndedAndWhatNeedsLess) {
  TinyStep step;
  const auto fail = [] { throw std::bad_alloc(); };
  const std::string text = error_of([&] { step.errors.explaining_memory("update", fail); });
  EXPECT_THAT(text, AllOf(HasSubstr("out of memory in step 7, update"), HasSubstr("an advice"),
                          HasSubstr("a smaller training.batch_size")));
  TinyStep of_one({}, /*batch_size=*/1);
  EXPECT_THAT(error_of([&] { of_one.errors.explaining_memory("update", fail); }),
              AllOf(HasSubstr("an advice"), Not(HasSubstr("batch_size"))));
}

TEST(PassErrors, NameNoStepBeforeTheFirst) {
  TinyStep step;
  step.state.step = 0;
  EXPECT_THAT(error_of([&] {
                step.errors.explaining({.activity = "sample"},
                                       [](TaskModel&) { throw std::bad_alloc(); });
              }),
              HasSubstr("out of memory in sample"));
}

TEST(PassErrors, LeaveTheUsersMistakesAsTheyAre) {
  TinyStep step;
  const auto batch = step.data->next();
  const PassWork work{.activity = "forward", .batch = batch.get(), .samples = step.data.get()};
  EXPECT_THROW(
      step.errors.explaining(work, [](TaskModel&) { throw UserError("a column is missing"); }),
      UserError);
  EXPECT_EQ(error_of([&] {
              step.errors.explaining(work,
                                     [](TaskModel&) { throw std::runtime_error("it failed"); });
            }),
            "it failed")
      << "nothing more is known of a batch without tensors";
}

}  // namespace
}  // namespace phalanx::tiny
