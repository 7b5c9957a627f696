// SPDX-License-Identifier: Apache-2.0
// Validation in the midst of training: right means, and no trace.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/loop/spy.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/random.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

const TrainerConfig kDouble{
    .name = "tiny", .exp_dir = "nowhere", .use_double_weight_precision = true};

// The token-weighted mean of squares over validation samples 0 .. count of `order`.
double mean_by_hand(const std::vector<double>& w, const std::vector<int64_t>& samples) {
  double sum = 0;
  double tokens = 0;
  for (const int64_t i : samples) {
    const auto x = static_cast<double>(i);
    const double error =
        w[0] * std::sin(x) + w[1] * (2 * x + 1) / 3 + w[2] / (x + 1) + w[3] - std::cos(x / 7);
    sum += static_cast<double>(tokens_of(i)) * error * error;
    tokens += static_cast<double>(tokens_of(i));
  }
  return sum / tokens;
}

TEST(Validation, MeansAreOverTokensWhateverTheBatches) {
  const std::vector<double> weights{0.5, -0.25, 2, 1};
  const std::vector<int64_t> all{0, 1, 2, 3, 4};
  for (const int64_t batch_size : {1, 2, 3, 5}) {
    Parts parts;
    const auto trainer = make_spied(parts, {.max_steps = 1, .batch_size = batch_size}, kDouble);
    set_weights(*parts.model, weights);
    const NamedValues values = trainer->validation_means(std::nullopt).value();
    ASSERT_THAT(values, SizeIs(2));
    EXPECT_EQ(values[0].first, "loss");
    EXPECT_NEAR(values[0].second, mean_by_hand(weights, all), 1e-12);
    EXPECT_THAT(values[1], Pair("twice", 2 * values[0].second)) << "the task's own metric";
    EXPECT_EQ(trainer->evaluate([](const auto&) {}, {}).front(), values);
  }
}

TEST(Validation, TakesTheFirstBatchesWhereThereIsALimit) {
  Parts parts;
  const auto trainer = make_spied(parts, {.max_steps = 1, .batch_size = 2}, kDouble);
  for (int i = 0; i < 2; ++i) {
    const double loss = trainer->validation_means(1)->front().second;
    EXPECT_NEAR(loss, mean_by_hand({0, 0, 0, 0}, parts.task->validated.back()), 1e-12);
  }
  EXPECT_THAT(parts.task->validated,
              ElementsAre(ElementsAre(sample_at(0, 0, 5), sample_at(1, 0, 5)),
                          ElementsAre(sample_at(0, 0, 5), sample_at(1, 0, 5))));
}

TEST(Validation, NamesTheSumAndTheParts) {
  const auto names = [](std::vector<std::string> parts_named) {
    Parts parts{.task = std::make_shared<Regression>(TaskOptions{.parts = std::move(parts_named)})};
    std::vector<std::string> names;
    const auto trainer = make_spied(parts, {.max_steps = 1, .batch_size = 2});
    for (const NamedValues& set : trainer->evaluate([](const auto&) {}, {})) {
      for (const auto& [name, value] : set) names.push_back(name);
    }
    return names;
  };
  EXPECT_THAT(names({"size", "error"}), ElementsAre("loss", "size", "error", "twice"));
  EXPECT_THAT(names({"error"}), ElementsAre("loss", "twice")) << "as training names a single part";
}

TEST(Validation, LeavesTrainingAsItWas) {
  const TrainingConfig training{.max_steps = 7, .batch_size = 4};
  StopSignal::install();
  const auto run = [&](bool validates) {
    spy = {};
    seed_everything(3);
    if (validates) {
      spy.at_step_end = [](TrainerBase& trainer) {
        const State before = trainer.state();
        const at::Tensor random = rng_states().at("cpu");
        dynamic_cast<SpiedTrainer&>(trainer).validate({});
        EXPECT_TRUE(random.equal(rng_states().at("cpu")));
        EXPECT_EQ(trainer.state().phase, Phase::train);
        EXPECT_EQ(trainer.state().step, before.step);
        EXPECT_EQ(trainer.state().epoch_samples, before.epoch_samples);
      };
    }
    Parts parts{.model = make_model(/*dropout=*/0.5)};
    make_spied(parts, training)->train();
    return parts;
  };
  const Parts plain = run(false);
  const at::Tensor random = rng_states().at("cpu");
  const Parts validated = run(true);
  EXPECT_TRUE(random.equal(rng_states().at("cpu")));
  EXPECT_THAT(validated.task->validated, SizeIs(7 * 2));
  EXPECT_EQ(validated.task->trained, plain.task->trained);
  EXPECT_EQ(weights_of(*validated.model), weights_of(*plain.model));

  for (size_t i = 0; i < validated.task->states.size(); ++i) {
    const bool validates = validated.task->states[i].phase == Phase::validate;
    EXPECT_EQ(validated.task->modes[i], !validates) << "call " << i;
  }
}

TEST(Validation, RunsItsHooksAroundIt) {
  spy = {};
  const auto trainer = make_spied(Parts{}, {.max_steps = 1, .batch_size = 3});
  trainer->validate({});
  EXPECT_THAT(spy.events,
              ElementsAre("validation start", "validation batch start", "validation batch end",
                          "validation batch start", "validation batch end", "validation end"));
}

TEST(Validation, IsRefusedWithoutData) {
  Parts parts{.task = std::make_shared<Regression>(TaskOptions{.data = {.validation_samples = 0}})};
  const auto trainer = make_spied(parts, {.max_steps = 1});
  EXPECT_EQ(trainer->validation_data(), nullptr);
  EXPECT_THROW(trainer->evaluate([](const auto&) {}, {}), UserError);
}

/// With so many samples of validation data, and files for sets.
class OfSets : public Regression {
 public:
  explicit OfSets(int64_t samples) : Regression({.data = {.validation_samples = samples}}) {}

  bool takes_files() const override { return true; }
};

TEST(Validation, RefusesTextsWithoutDataOfTheTaskBeforeItMeasuresSets) {
  const auto of_set = std::make_shared<OfSets>(5);
  const Parts parts{.task = std::make_shared<OfSets>(0)};
  const auto trainer = make_spied(parts, {.max_steps = 1, .batch_size = 2});
  trainer->add_validation_set("more", of_set, {"rows.txt"});
  const auto error_of = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  };
  const auto is_told = HasSubstr("set validation.generate.n=0, or give the task validation data");
  EXPECT_THAT(error_of([&] { (void)trainer->validate({.texts = 1}); }), is_told);
  EXPECT_THAT(error_of([&] { trainer->rehearse_validation(1); }), is_told);
  EXPECT_THAT(of_set->validated, SizeIs(0));
  EXPECT_EQ(error_of([&] { (void)trainer->validate({}); }), "none");
}

// Its loss would stand under a file's name that it has not read.
TEST(Validation, OfFilesIsRefusedForATaskThatReadsNone) {
  Parts parts;
  const auto trainer = make_spied(parts, {.max_steps = 1});
  bool is_loaded = false;
  try {
    trainer->evaluate([&](const auto&) { is_loaded = true; }, {.sets = {{"a.csv"}}});
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("reads no other data than what its config names"));
  }
  EXPECT_FALSE(is_loaded) << "before a model is";
  EXPECT_THAT(parts.task->validated, SizeIs(0));
}

TEST(Sample, IsDrawnAsInValidation) {
  Parts parts;
  const auto trainer = make_spied(parts, {.max_steps = 1});
  const at::Tensor random = rng_states().at("cpu");
  const std::string first = trainer->sample();
  EXPECT_TRUE(random.equal(rng_states().at("cpu")));
  EXPECT_EQ(trainer->sample(), first);
  EXPECT_THAT(parts.task->modes, ElementsAre(false, false));
}

}  // namespace
}  // namespace phalanx::tiny
