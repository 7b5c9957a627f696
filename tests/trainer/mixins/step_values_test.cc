// SPDX-License-Identifier: Apache-2.0
// A mixin of one file adds the gradient norms of groups of parameters to the log's records of
// steps.

#include "trainer/mixins/step_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/measuring.h"
#include "tests/trainer/loop/planted.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/loop/two_optimizers.h"
#include "tests/trainer/mixins/group_norms.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/config/tree/node.h"
#include "trainer/metrics/sink.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/guards_mixin.h"
#include "trainer/mixins/logging_mixin.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using Json = nlohmann::json;

std::vector<Record> records;

class RecordingSink : public Sink {
 public:
  using Config = NoFields;
  explicit RecordingSink(Config) {}

  void open(const RunDescription&, std::optional<int64_t>) override {}
  void write(const Record& record) override { records.push_back(record); }
};

REGISTER_SINK("recording", RecordingSink);

using Logged = Trainer<LoggingMixin, GroupNorms, GuardsMixin, CheckpointMixin, Spy>;

/// How a run is.
struct Setting {
  std::shared_ptr<Regression> task = std::make_shared<Regression>();
  TrainingConfig training = {.max_steps = 4, .batch_size = 4};
  LoggingConfig logging = {.every_n_steps = 1, .sinks = {"recording"}};
  GuardsConfig guards = {};
  std::vector<OptimizerPart> optimizers = {};  ///< None: the usual one.
  std::string folder = "run";
};

std::vector<std::string> names_of(const Record& record) {
  std::vector<std::string> names;
  for (const auto& [name, value] : record.fields) names.push_back(name);
  return names;
}

// NaN where the record has no such value.
double value_of(const Record& record, const std::string& name) {
  for (const auto& [key, value] : record.fields) {
    if (key == name) return std::get<double>(value);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// A config with these optimizers, which the start of a run names.
std::shared_ptr<const config::Node> with_names(config::Node config,
                                               const std::vector<OptimizerPart>& optimizers) {
  config::Node section = config::Node::map();
  for (const OptimizerPart& part : optimizers) {
    config::Node chosen = config::Node::map();
    chosen.set("name", config::Node::string("tiny"));
    section.set(part.name(), std::move(chosen));
  }
  config.set("optimizers", std::move(section));
  return std::make_shared<const config::Node>(std::move(config));
}

class AddedValues : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    spy = {};
    records.clear();
    norms_measured = 0;
  }

  // Returns what was printed.
  std::string train(const Setting& setting) {
    optimizer_ = std::make_shared<Descent>(0.01);
    const Parts parts{.task = setting.task, .optimizer = optimizer_};
    TrainerSetup setup =
        make_setup(parts, setting.training,
                   {.name = "tiny",
                    .exp_dir = (run_.path() / setting.folder).string(),
                    .use_double_weight_precision = true},
                   {{"logging", {}, config::write(setting.logging)},
                    {"group_norms", {}, config::Node::map()},
                    {"guards", {}, config::write(setting.guards)},
                    {"checkpoint", {}, config::write(CheckpointConfig{.save_every_n_steps = 2})},
                    {"spy", {}, config::Node::map()}});
    if (!setting.optimizers.empty()) {
      setup.components.optimizer = nullptr;
      setup.optimizers = setting.optimizers;
      setup.config = with_names(*setup.config, setting.optimizers);
    }
    Logged trainer(std::move(setup));
    ::testing::internal::CaptureStdout();
    try {
      trainer.train();
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }

  // What is said where the spy adds a value in a run's first forward pass.
  std::string refusal(const std::string& name, const Setting& setting = {}) {
    spy = {};
    spy.at_before_forward = [&](TrainerBase& trainer) { add(trainer, name, 1); };
    try {
      train(setting);
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "none";
  }

  static void add(TrainerBase& trainer, const std::string& name, double value) {
    auto& logged = dynamic_cast<Logged&>(trainer);
    logged.log_value(static_cast<const Spy<Logged>&>(logged), name, value);
  }

  std::vector<Json> rows(const std::string& folder) const {
    std::ifstream file(run_.path() / folder / "logs/metrics.jsonl");
    std::vector<Json> rows;
    for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
    return rows;
  }

  RunDir run_;
  std::shared_ptr<Descent> optimizer_;
};

TEST_F(AddedValues, StandBehindTheRatesInEachRecord) {
  train({.logging = {.every_n_steps = 2, .sinks = {"recording"}}});
  ASSERT_THAT(records, SizeIs(3));
  const std::vector<std::string> names{"loss",           "lr",
                                       "grad_norm",      "grad_norm/weight",
                                       "grad_norm/bias", "tokens_per_second",
                                       "step_seconds",   "data_seconds"};
  for (const Record& record : records) {
    EXPECT_EQ(names_of(record), names);
    const std::vector<double>& gradient = optimizer_->gradients.at(record.state.step - 1);
    EXPECT_NEAR(value_of(record, "grad_norm/weight"),
                std::hypot(gradient[0], gradient[1], gradient[2]), 1e-12);
    EXPECT_NEAR(value_of(record, "grad_norm/bias"), std::abs(gradient[3]), 1e-12);
  }
  EXPECT_EQ(norms_measured, 3) << "the third step has no record";
}

TEST_F(AddedValues, AreMeasuredInEachStepThatTimeMayEnd) {
  train({.training = {.max_steps = 4,
                      .max_seconds = config::Interval{std::chrono::hours(1)},
                      .batch_size = 4},
         .logging = {.every_n_steps = 100, .sinks = {"recording"}}});
  EXPECT_THAT(records, SizeIs(2));
  EXPECT_EQ(norms_measured, 4);
}

TEST_F(AddedValues, AreInTheFileAndOnTheConsole) {
  const std::string text = train({.logging = {.every_n_steps = 1, .sinks = {"progress", "jsonl"}}});
  EXPECT_THAT(text, HasSubstr("  grad_norm/weight "));
  ASSERT_THAT(rows("run"), SizeIs(4));
  for (const Json& row : rows("run")) EXPECT_GT(row.at("grad_norm/weight").get<double>(), 0);
}

TEST_F(AddedValues, AreThoseOfTheStepsAfterAResume) {
  const Setting half{.training = {.max_steps = 2, .batch_size = 4},
                     .logging = {.every_n_steps = 1, .sinks = {"jsonl"}},
                     .folder = "halves"};
  Setting whole = half;
  whole.training.max_steps = 4;
  train(half);
  train(whole);
  whole.folder = "whole";
  train(whole);
  const auto values = [&](const std::string& folder) {
    std::vector<std::pair<int64_t, double>> found;
    for (const Json& row : rows(folder)) {
      found.emplace_back(row.at("step").get<int64_t>(), row.at("grad_norm/weight").get<double>());
    }
    return found;
  };
  ASSERT_THAT(values("whole"), SizeIs(4));
  EXPECT_EQ(values("halves"), values("whole"));
}

TEST_F(AddedValues, OfAStepThatIsUndoneAreDropped) {
  bool was_there = false;
  spy.at_before_forward = [&](TrainerBase& trainer) {
    if (trainer.state().step == 3 && !std::exchange(was_there, true)) add(trainer, "once", 1);
  };
  const std::map<std::size_t, double> planted{{3, std::numeric_limits<double>::quiet_NaN()}};
  train({.task = std::make_shared<Planted>(planted),
         .guards = {.on_nonfinite = OnBadStep::rollback}});
  ASSERT_TRUE(was_there);
  ASSERT_THAT(records, SizeIs(4));
  for (const Record& record : records) EXPECT_THAT(names_of(record), Not(Contains("once")));
  EXPECT_THAT(names_of(records[2]), Contains("grad_norm/weight")) << "those of its second time";
}

TEST_F(AddedValues, OfAStepThatAGuardSkipsAreItsOwn) {
  spy.at_before_forward = [](TrainerBase& trainer) {
    add(trainer, "number", static_cast<double>(trainer.state().step));
  };
  const std::map<std::size_t, double> planted{{3, std::numeric_limits<double>::quiet_NaN()}};
  train({.task = std::make_shared<Planted>(planted),
         .logging = {.every_n_steps = 100, .sinks = {"recording"}},
         .guards = {.on_nonfinite = OnBadStep::skip}});
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_THAT(names_of(records[1]), AllOf(Contains("skipped"), Not(Contains("grad_norm/weight"))))
      << "nobody knew before that it would be logged";
  for (const Record& record : records) EXPECT_EQ(value_of(record, "number"), record.state.step);
}

TEST_F(AddedValues, AreAbsentWhereATaskSkipsTheStep) {
  const auto skip_second = [](OwnStep& task, TrainingStep& step, Regressor& model) {
    if (step.state().step == 2) return step.skip();
    usual_step(task, step, model);
  };
  train({.task = std::make_shared<OwnStep>(skip_second)});
  ASSERT_THAT(records, SizeIs(4));
  for (const Record& record : records) {
    EXPECT_EQ(std::isnan(value_of(record, "grad_norm/weight")), record.state.step == 2);
  }
}

TEST_F(AddedValues, OfTheLastCallOfAStepCount) {
  double calls = 0;
  spy.at_before_forward = [&](TrainerBase& trainer) { add(trainer, "calls", ++calls); };
  train({.training = {.max_steps = 2, .batch_size = 2, .gradient_accumulation_steps = 2}});
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(value_of(records[0], "calls"), 2);
  EXPECT_EQ(value_of(records[1], "calls"), 4);
}

TEST_F(AddedValues, HaveNoNameOfARecordsOwnValues) {
  train({.logging = {.every_n_steps = 1, .sinks = {"jsonl"}}});
  std::vector<std::string> keys{"nonfinite", "skipped", "skipped_steps", "loss_scale"};
  const Json row = rows("run").front();
  for (const auto& [key, value] : row.items()) {
    if (!key.starts_with("grad_norm/")) keys.push_back(key);
  }
  EXPECT_THAT(keys, SizeIs(17));
  StepValues values;
  values.end(0);
  for (const std::string& key : keys) {
    EXPECT_THAT([&] { values.add("mine", 1, key, 0.0); },
                ThrowsMessage<std::logic_error>("the mixin 'mine' cannot add '" + key +
                                                "' to the record of a step: records have a value "
                                                "of that name; choose another one"));
  }
}

TEST_F(AddedValues, HaveNoNameThatAnotherMixinOrTheTaskTakes) {
  EXPECT_EQ(refusal("grad_norm/weight"),
            "the mixin 'group_norms' cannot add 'grad_norm/weight' to the record of a step: the "
            "mixin 'spy' adds a value of that name; choose another one");
  const TaskOptions parts{.parts = {"size", "error"}};
  EXPECT_EQ(refusal("error", {.task = std::make_shared<Regression>(parts)}),
            "the mixin 'spy' cannot add 'error' to the record of a step: the task logs a value of "
            "that name; choose another one");
  const auto measuring = std::make_shared<Measuring>();
  measuring->feeds = false;
  EXPECT_THAT(refusal("seen", {.task = measuring}), HasSubstr("records have a value of that name"))
      << "also where a record lacks it";
  const TwoOptimizers two;
  EXPECT_THAT(refusal("lr/critic", {.task = std::make_shared<OwnStep>(usual_step),
                                    .optimizers = two.make_parts()}),
              HasSubstr("records have a value of that name"));
  EXPECT_EQ(refusal("mine"), "none");
}

TEST_F(AddedValues, AreNumbersWithAName) {
  EXPECT_THAT(refusal(""), HasSubstr("write a name without blanks"));
  EXPECT_THAT(refusal("two words"), HasSubstr("write a name without blanks"));
  StepValues values;
  values.end(0);
  EXPECT_THAT([&] { values.add("mine", 1, "two", at::Tensor()); },
              ThrowsMessage<std::logic_error>(HasSubstr("it is no tensor of one element")));
}

TEST_F(AddedValues, BelongToAStepThatIsGoingOn) {
  for (const auto hook : {&SpyNotes::at_training_start, &SpyNotes::at_step_end}) {
    spy = {};
    spy.*hook = [](TrainerBase& trainer) { add(trainer, "late", 1); };
    EXPECT_THAT([&] { train({}); },
                ThrowsMessage<std::logic_error>(HasSubstr("no step is going on, or its record is "
                                                          "made; call log_value in")));
  }
}

}  // namespace
}  // namespace phalanx::tiny
