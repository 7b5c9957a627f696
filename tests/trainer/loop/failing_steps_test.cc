// SPDX-License-Identifier: Apache-2.0
// Steps that fail name the input that they fail by, and the module that they fail in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/loop/flowers.h"
#include "tests/trainer/loop/spy.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::flowers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const TrainingConfig kOneStep{.max_steps = 1, .batch_size = 4};

struct Told {
  std::string message;
  bool is_users_mistake = false;
};

template <class Action>
Told told_by(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return {.message = error.what(), .is_users_mistake = true};
  } catch (const std::exception& error) {
    return {.message = error_text(error)};
  }
  return {.message = "nothing"};
}

Told told_in_training(const Parts& run) {
  tiny::spy = {};
  return told_by([&] { tiny::SpiedTrainer(setup_of(run, kOneStep)).train(); });
}

// The third flower is in line 4.
std::vector<Flower> third(const std::function<void(Flower& flower)>& change) {
  std::vector<Flower> flowers = eight_flowers();
  change(flowers[2]);
  return flowers;
}

std::vector<Flower> all(const std::function<void(Flower& flower)>& change) {
  std::vector<Flower> flowers = eight_flowers();
  for (Flower& flower : flowers) change(flower);
  return flowers;
}

struct Case {
  std::string name;
  std::vector<Flower> flowers = eight_flowers();
  Faults faults;
  std::vector<std::string> message;  ///< Parts of it.
  bool is_users_mistake = false;
};

void PrintTo(const Case& failing, std::ostream* stream) { *stream << failing.name; }

std::vector<Case> cases() {
  const std::string first_line = "'flowers.csv', line 2: is the first of its samples";
  return {
      {.name = "Columns",
       .flowers = all([](Flower& f) { f.sizes.resize(9, 0.5); }),
       .message = {"mat1 and mat2 shapes cannot be multiplied (4x9 and 4x8)\n  step 1, forward, ",
                   "the module first (Linear): addmm(first.bias float32 [8], sizes float32 [4, 9], "
                   "first.weight float32 [4, 8])",
                   "a micro-batch of 4 samples", "sizes: float32 [4, 9], from -0.5 to 2",
                   first_line}},
      {.name = "ColumnsOfOneLine",
       .flowers = third([](Flower& f) { f.sizes.push_back(1); }),
       .message = {"stack expects each tensor to be equal size", "'flowers.csv', line 2: is one",
                   "'flowers.csv', line 4: is one"}},
      {.name = "Label",
       .flowers = third([](Flower& f) { f.kind = 3; }),
       .message = {"Target 3 is out of bounds",
                   "'flowers.csv', line 4: kinds is 3, but cross_entropy_loss takes 0 to 2",
                   "cross_entropy_loss(float32 [4, 3], kinds int64 [4]), behind the module head",
                   "kinds: int64 [4], from 0 to 3", first_line},
       .is_users_mistake = true},
      {.name = "NegativeLabel",
       .flowers = third([](Flower& f) { f.kind = -1; }),
       .message = {"Target -1 is out of bounds", "'flowers.csv', line 4: kinds is -1, but"},
       .is_users_mistake = true},
      {.name = "Id",
       .flowers = third([](Flower& f) { f.colour = 5; }),
       .message = {"index out of range in self",
                   "'flowers.csv', line 4: colours is 5, but embedding takes 0 to 4",
                   "the module colours (Embedding): embedding("},
       .is_users_mistake = true},
      {.name = "IdsOfManyLines",
       .flowers = all([](Flower& f) { f.colour = -7; }),
       .message = {"'flowers.csv', line 2: colours is -7, but embedding takes 0 to 4",
                   "line 4: colours is -7", "and 1 more"},
       .is_users_mistake = true},
      {.name = "Nan",
       .flowers = third([](Flower& f) { f.sizes[1] = kNan; }),
       .message =
           {"the loss is nan: 'flowers.csv', line 4: sizes[1] is nan. Repair such samples or "
            "leave them out"},
       .is_users_mistake = true},
      {.name = "Infinity",
       .flowers = third([](Flower& f) { f.sizes[3] = -kInfinity; }),
       .message = {"the loss is nan: 'flowers.csv', line 4: sizes[3] is -inf. Repair"},
       .is_users_mistake = true},
      {.name = "NanInTheLoss",
       .flowers = third([](Flower& f) { f.weight = kInfinity; }),
       .message = {"the loss is inf: 'flowers.csv', line 4: weights is inf. Repair"},
       .is_users_mistake = true},
      {.name = "Precision",
       .faults = {.has_doubles = true},
       .message = {"must have the same dtype",
                   "the module first (Linear): addmm(first.bias float32 [8], sizes float64",
                   "sizes: float64 [4, 4]", first_line}},
      {.name = "OwnCode",
       .faults = {.block_throws = true},
       .message = {"the block cannot do this\n  step 1, forward, the module block (Block)\n",
                   "sizes: float32 [4, 4], from -0.5 to 2", first_line}},
      {.name = "NanOfAModule",
       .faults = {.takes_logarithms = true},
       .message = {"the loss is nan; the first value that is not finite is of log(float32 [4, 8]), "
                   "behind the module block.inner (Linear); samples 0, 1, 2, 3; the weights are as "
                   "they were",
                   "a lower learning rate", "guards.on_nonfinite: skip"}},
      {.name = "WrongCount",
       .faults = {.lacks_kinds = true},
       .message = {"Expected input batch_size (4) to match target batch_size (3)",
                   "cross_entropy_loss(float32 [4, 3], kinds int64 [3]), behind the module head "
                   "(Linear)",
                   "kinds: int64 [3], from 0 to 2", first_line}},
      {.name = "Backward",
       .faults = {.changes_what_is_saved = true},
       .message = {"modified by an inplace operation", "\n  step 1, backward\n",
                   "sizes: float32 [4, 4]", first_line}},
  };
}

class FailingSteps : public ::testing::TestWithParam<Case> {};

TEST_P(FailingSteps, NameWhatTheyFailBy) {
  const Case& failing = GetParam();
  const Told told = told_in_training(run_of(failing.flowers, failing.faults));
  for (const std::string& part : failing.message) EXPECT_THAT(told.message, HasSubstr(part));
  EXPECT_EQ(told.is_users_mistake, failing.is_users_mistake) << told.message;
  RecordProperty("message", told.message);
}

INSTANTIATE_TEST_SUITE_P(All, FailingSteps, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(FailingStep, IsExplainedInAValidationToo) {
  const Parts run = run_of(eight_flowers(), {}, third([](Flower& f) { f.kind = 9; }));
  tiny::spy = {};
  tiny::SpiedTrainer trainer(setup_of(run, kOneStep));
  const Told told = told_by([&] { trainer.validation_means(std::nullopt); });
  EXPECT_THAT(told.message, AllOf(HasSubstr("line 4: kinds is 9, but cross_entropy_loss takes"),
                                  HasSubstr("\n  validation, ")));
  EXPECT_TRUE(told.is_users_mistake);
}

TEST(FailingStep, IsExplainedInPredictionsToo) {
  const Parts run = run_of(third([](Flower& f) { f.colour = 5; }));
  tiny::spy = {};
  tiny::SpiedTrainer trainer(setup_of(run, kOneStep));
  const PredictionRequest request{
      .batch_size = 2,
      .format = [](int64_t, const Prediction&) { return std::string(); },
      .done = [](const PredictionSource&) { return int64_t{0}; },
      .take = [](const std::vector<std::string>&) {}};
  const Told told = told_by([&] { trainer.predict([](const TaskModel&) {}, request); });
  EXPECT_THAT(told.message, AllOf(HasSubstr("line 4: colours is 5, but embedding takes 0 to 4"),
                                  HasSubstr("\n  prediction, ")));
}

TEST(FailingStep, LeavesTheUsersMistakeAsItIs) {
  const Told told = told_in_training(run_of(eight_flowers(), {.users_mistake = true}));
  EXPECT_EQ(told.message, "the user's mistake");
  EXPECT_TRUE(told.is_users_mistake);
}

TEST(FailingStep, IsComputedOnceWhileAllIsWell) {
  const Parts run = run_of(eight_flowers());
  EXPECT_EQ(told_in_training(run).message, "nothing");
  EXPECT_EQ(run.task->losses, 1);
  EXPECT_EQ(passes_of(*run.model), 1);
}

TEST(FailingStep, IsRepeatedWithoutATraceInTheModel) {
  const Parts run = run_of(third([](Flower& f) { f.kind = 3; }));
  EXPECT_THAT(told_in_training(run).message, HasSubstr("line 4"));
  EXPECT_EQ(run.task->losses, 2);
  EXPECT_EQ(passes_of(*run.model), 1) << "the buffer is as the pass that failed has left it";
}

TEST(FailingStep, TakesMinusInfinityBesideZerosForAMask) {
  // Weights of the loss that hold nothing else: what makes it infinite is not looked for there.
  const Parts run = run_of(third([](Flower& f) { f.weight = -kInfinity; }), {});
  EXPECT_THAT(told_in_training(run).message, HasSubstr("weights is -inf")) << "the others are 1";
  std::vector<Flower> masked = all([](Flower& f) { f.weight = 0; });
  masked[2].weight = -kInfinity;
  const Told told = told_in_training(run_of(masked));
  EXPECT_THAT(told.message, AllOf(HasSubstr("the loss is"), Not(HasSubstr("weights is"))));
}

}  // namespace
}  // namespace phalanx::flowers
