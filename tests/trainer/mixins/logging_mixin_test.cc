// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/logging_mixin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "tests/trainer/loop/measuring.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/io/file.h"
#include "trainer/metrics/sink.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<std::string> calls;  // of all sinks
std::vector<Record> records;     // of those called "recording"
std::vector<RunDescription> runs;

class RecordingSink : public Sink {
 public:
  using Config = NoFields;
  explicit RecordingSink(Config) {}

  void open(const RunDescription& run, std::optional<int64_t> resumed_step) override {
    calls.push_back("open " + (resumed_step ? std::to_string(*resumed_step) : "new"));
    runs.push_back(run);
  }
  void write(const Record& record) override {
    calls.push_back(fmt::format("write {}", record.state.step));
    records.push_back(record);
  }
  void close() override { calls.emplace_back("close"); }
};

class OtherSink : public Sink {
 public:
  using Config = NoFields;
  explicit OtherSink(Config) {}

  void open(const RunDescription&, std::optional<int64_t>) override {
    calls.emplace_back("other open");
  }
  void write(const Record&) override { calls.emplace_back("other write"); }
  void close() override { calls.emplace_back("other close"); }
};

/// Writes on a disk that is full from the second record to the last but one.
class FailingSink : public Sink {
 public:
  using Config = NoFields;
  explicit FailingSink(Config) {}

  void open(const RunDescription& run, std::optional<int64_t>) override {
    if (run.exp_name == "no_room") throw IoError("create", "rows", ENOSPC);
  }
  void write(const Record& record) override {
    if (record.state.step == 2) throw IoError("write", "rows", ENOSPC);
    if (record.state.step == 3) throw std::system_error(EIO, std::generic_category(), "rows");
    if (record.state.step == 5) throw std::logic_error("a slip");
    calls.push_back(fmt::format("wrote {}", record.state.step));
  }
};

REGISTER_SINK("failing", FailingSink);
REGISTER_SINK("recording", RecordingSink);
REGISTER_SINK("other", OtherSink);

using Logged = Trainer<LoggingMixin, Spy>;

class Logging : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    spy = {};
    calls.clear();
    records.clear();
    runs.clear();
  }

  std::unique_ptr<Logged> make(const Parts& parts, const TrainingConfig& training,
                               const LoggingConfig& logging) {
    return std::make_unique<Logged>(make_setup(
        parts, training, {.name = "tiny", .exp_name = "some_name", .exp_dir = run_.path().string()},
        {{"logging", {}, config::write(logging)}, {"spy", {}, config::Node::map()}}));
  }

  // Trains and returns what was printed.
  std::string train(const Parts& parts, const TrainingConfig& training,
                    const LoggingConfig& logging) {
    const auto trainer = make(parts, training, logging);
    ::testing::internal::CaptureStdout();
    trainer->train();
    return ::testing::internal::GetCapturedStdout();
  }

  RunDir run_;
};

std::vector<int64_t> logged_steps() {
  std::vector<int64_t> steps;
  for (const auto& record : records) steps.push_back(record.state.step);
  return steps;
}

std::vector<std::string> names_of(const Record& record) {
  std::vector<std::string> names;
  for (const auto& [name, value] : record.fields) names.push_back(name);
  return names;
}

TEST_F(Logging, TheFirstTheLastAndEveryNthStepAreLogged) {
  train({}, {.max_steps = 10, .batch_size = 4}, {.every_n_steps = 4, .sinks = {"recording"}});
  EXPECT_THAT(logged_steps(), ElementsAre(1, 4, 8, 10));
}

TEST_F(Logging, TheLastStepIsLoggedWhereOnlyTheTimeEndsTheRun) {
  // Less than any step takes is left.
  spy.at_restore = [](TrainerBase& trainer) {
    trainer.restore({.step = 4, .elapsed = 0.9999999e-3});
  };
  train({.task = std::make_shared<Measuring>()},
        {.max_seconds = config::Interval{std::chrono::milliseconds(1)}, .batch_size = 4},
        {.every_n_steps = 100, .sinks = {"recording"}});
  EXPECT_THAT(logged_steps(), ElementsAre(5));
  EXPECT_THAT(names_of(records[0]), ::testing::Contains("seen"));
}

// As after a rollback, which leaves samples out: the run ends before the step that was foreseen.
TEST_F(Logging, TheLastStepIsMeasuredWhereSamplesEndTheRunSooner) {
  for (const TrainingConfig& limit : {TrainingConfig{.max_epochs = 1, .batch_size = 4},
                                      TrainingConfig{.max_samples = 10, .batch_size = 4}}) {
    spy = {};
    records.clear();
    spy.at_restore = [](TrainerBase& trainer) {
      trainer.restore({.step = 1, .samples = 8, .epoch_samples = 8});
    };
    train({.task = std::make_shared<Measuring>()}, limit,
          {.every_n_steps = 100, .sinks = {"recording"}});
    EXPECT_THAT(logged_steps(), ElementsAre(2));
    EXPECT_THAT(names_of(records[0]),
                AllOf(::testing::Contains("seen"), ::testing::Contains("grad_norm")));
  }
}

TEST_F(Logging, SinksAreCalledInOrder) {
  train({}, {.max_steps = 1, .batch_size = 4}, {.sinks = {"other", "recording"}});
  EXPECT_THAT(calls, ElementsAre("other open", "open new", "other write", "write 1", "other close",
                                 "close"));
}

TEST_F(Logging, AResumeIsToldToSinks) {
  spy.at_restore = [](TrainerBase& trainer) { trainer.restore({.step = 2}); };
  // The spy's restore runs before any mixin starts, wherever it stands in the list.
  train({}, {.max_steps = 3, .batch_size = 4}, {.sinks = {"recording"}});
  EXPECT_THAT(calls, ElementsAre("open 2", "write 3", "close"));
}

TEST_F(Logging, ARecordHasTheFieldsOfMetricsJsonl) {
  const Parts parts{.task = std::make_shared<Regression>(TaskOptions{.parts = {"size", "error"}})};
  train(parts, {.max_steps = 2, .batch_size = 4}, {.every_n_steps = 2, .sinks = {"recording"}});
  ASSERT_THAT(records, SizeIs(2));
  const std::vector<std::string> fields{"loss",         "size",        "error",
                                        "lr",           "grad_norm",   "tokens_per_second",
                                        "step_seconds", "data_seconds"};
  for (const Record& record : records) {
    EXPECT_EQ(names_of(record), fields);
    EXPECT_EQ(record.phase, Phase::train);
  }
  const auto value = [](const Record& r, size_t i) { return std::get<double>(r.fields[i].second); };
  EXPECT_EQ(value(records[1], 0), spy.results[1].losses()[0].second);
  EXPECT_EQ(value(records[1], 3), 0.1);
  EXPECT_GT(value(records[1], 4), 0);
  EXPECT_DOUBLE_EQ(value(records[1], 5),
                   static_cast<double>(spy.results[1].tokens) / spy.results[1].step_seconds);
}

TEST_F(Logging, ATasksMetricsStandBehindTheLossAndInTheLastLines) {
  spy.at_step_end = [](TrainerBase& trainer) {
    if (trainer.state().step == 2) dynamic_cast<Logged&>(trainer).validate({});
  };
  const std::string text =
      train({.task = std::make_shared<Measuring>()}, {.max_steps = 2, .batch_size = 4},
            {.every_n_steps = 1, .sinks = {"recording"}});
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(names_of(records[0]),
            (std::vector<std::string>{"loss", "seen", "lr", "grad_norm", "tokens_per_second",
                                      "step_seconds", "data_seconds"}));
  EXPECT_EQ(std::get<double>(records[1].fields[1].second), 4);
  EXPECT_THAT(names_of(records[2]), ElementsAre("loss", "twice", "seen", "mean_number"));
  EXPECT_THAT(text,
              HasSubstr("\n  metrics     train seen 4; validation seen 5, mean_number 2.111\n"));
}

TEST_F(Logging, AsksForMetricsOnlyWhereTheyAreLogged) {
  std::vector<bool> measured;
  spy.at_step_end = [&](TrainerBase& trainer) {
    measured.push_back(!trainer.step_metrics().empty());
  };
  train({.task = std::make_shared<Measuring>()}, {.max_steps = 4, .batch_size = 4},
        {.every_n_steps = 100, .sinks = {"recording"}});
  EXPECT_THAT(measured, ElementsAre(true, false, false, true));
}

TEST_F(Logging, AsksForTheNormOnlyWhereItIsLogged) {
  train({}, {.max_steps = 4, .batch_size = 4}, {.every_n_steps = 4, .sinks = {"recording"}});
  EXPECT_TRUE(spy.results[0].grad_norm && spy.results[3].grad_norm);
  EXPECT_FALSE(spy.results[1].grad_norm || spy.results[2].grad_norm);
}

TEST_F(Logging, ValidationsAreRecords) {
  spy.at_step_end = [](TrainerBase& trainer) {
    if (trainer.state().step == 2) dynamic_cast<Logged&>(trainer).validate({});
  };
  train({}, {.max_steps = 2, .batch_size = 4}, {.every_n_steps = 100, .sinks = {"recording"}});
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[2].phase, Phase::validate);
  EXPECT_EQ(records[2].state.step, 2);
  EXPECT_THAT(names_of(records[2]), ElementsAre("loss", "twice"));
}

TEST_F(Logging, AValidationBeforeTheFirstStepIsValidationAndNoTraining) {
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> validated{};
  spy.at_training_start = [&](TrainerBase& trainer) {
    const auto begin = Clock::now();
    for (int i = 0; i < 100; ++i) dynamic_cast<Logged&>(trainer).validate({});
    validated = Clock::now() - begin;
  };
  const auto trainer = make({}, {.max_steps = 1, .batch_size = 4}, {.sinks = {"recording"}});
  ::testing::internal::CaptureStdout();
  trainer->train();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), Not(HasSubstr("rest -")));
  const TimeSplit time = trainer->time_split();
  EXPECT_GT(time.validation, 0);
  EXPECT_GT(time.total, validated.count());
  EXPECT_GE(time.total, time.data + time.forward_backward + time.update + time.validation);
  ASSERT_THAT(records, SizeIs(101));
  EXPECT_GT(records[0].state.elapsed, 0);
  EXPECT_GT(records[99].state.elapsed, records[0].state.elapsed);
  EXPECT_GT(records[100].state.elapsed, validated.count());
}

TEST_F(Logging, AnErrorLeavesSinksOpen) {
  const Parts parts{.task = std::make_shared<Regression>(TaskOptions{.fails_at = 2})};
  const auto trainer = make(parts, {.max_steps = 3, .batch_size = 4}, {.sinks = {"recording"}});
  EXPECT_THROW(trainer->train(), std::runtime_error);
  EXPECT_THAT(calls, ElementsAre("open new", "write 1")) << "what was written is there";
}

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(Logging, ASinkThatCannotWriteLacksRecordsAndTheRunGoesOn) {
  const std::string text = train({}, {.max_steps = 4, .batch_size = 4},
                                 {.every_n_steps = 1, .sinks = {"failing", "recording"}});
  EXPECT_THAT(calls, ElementsAre("open new", "wrote 1", "write 1", "write 2", "write 3", "wrote 4",
                                 "write 4", "close"));
  EXPECT_THAT(text, HasSubstr("warning: the sink failing lacks 1 record so far: cannot write "
                              "'rows': No space left on device; free some space"));
  EXPECT_THAT(text, HasSubstr("warning: the sink failing lacks 2 records: rows: Input/output "
                              "error\n"));
  EXPECT_EQ(count_of("lacks", text), 2) << "within a minute it is told once, and in the end";
}

TEST_F(Logging, WhatIsLostIsToldWhereAnErrorEndsTheRunToo) {
  auto trainer =
      make({}, {.max_steps = 5, .batch_size = 4}, {.every_n_steps = 1, .sinks = {"failing"}});
  ::testing::internal::CaptureStdout();
  EXPECT_THROW(trainer->train(), std::logic_error) << "which is no fault of a disk";
  trainer.reset();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("failing lacks 2 records: "));
}

TEST_F(Logging, WhatCannotBeOpenedIsTheUsersMistake) {
  const auto error_of = [&](const TrainerConfig& config) -> std::string {
    Logged trainer(make_setup({}, {.max_steps = 1, .batch_size = 4}, config,
                              {{"logging", {}, config::write(LoggingConfig{.sinks = {"failing"}})},
                               {"spy", {}, config::Node::map()}}));
    try {
      trainer.train();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string folder = run_.path().string();
  EXPECT_EQ(error_of({.name = "tiny", .exp_name = "no_room", .exp_dir = folder}),
            "logs cannot be kept in '" + folder +
                "/logs': cannot create 'rows': No space left on device; free some space on that "
                "file system");
  std::ofstream(run_.path() / "file").put('x');
  EXPECT_THAT(error_of({.name = "tiny", .exp_dir = folder, .log_dir_name = "file/logs"}),
              AllOf(HasSubstr("logs cannot be kept in"), HasSubstr("Not a directory")));
}

TEST_F(Logging, SinksKnowTheRunAndItsFolderIsThere) {
  train({}, {.max_steps = 3, .batch_size = 4}, {.sinks = {"recording"}});
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0].exp_name, "some_name");
  EXPECT_EQ(runs[0].exp_dir, run_.path().string());
  EXPECT_EQ(runs[0].log_dir, (run_.path() / "logs").string());
  EXPECT_TRUE(std::filesystem::is_directory(runs[0].log_dir));
  EXPECT_EQ(runs[0].max_steps, 3);
  EXPECT_EQ(runs[0].model, "tiny");
  EXPECT_EQ(runs[0].parameters, 4);
}

TEST_F(Logging, ScreensSayWhatTheRunIsAndWas) {
  const std::string text =
      train({}, {.max_steps = 3, .batch_size = 4}, {.every_n_steps = 1, .sinks = {"recording"}});
  EXPECT_THAT(
      text, AllOf(HasSubstr("4 parameters"), HasSubstr("decay: 1 tensor, 3 parameters"),
                  HasSubstr("no decay: 1 tensor, 1 parameter"),
                  HasSubstr("10 training samples, 5 validation samples"),
                  HasSubstr("3 steps; each 4 samples = 1 rank x 1 micro-batch of 4\n"),
                  HasSubstr("none; 4 parameters outside\n"), HasSubstr("\nspy        is here\n")));
  EXPECT_THAT(text,
              AllOf(HasSubstr("finished at step 3"), HasSubstr("train loss"), HasSubstr("tokens/s"),
                    HasSubstr("sample:\ndrawn "), HasSubstr(" evaluate " + run_.path().string())));
  EXPECT_THAT(text, Not(HasSubstr("validation  last"))) << "there was none";
  EXPECT_THAT(text, Not(HasSubstr("resumed")));
}

TEST_F(Logging, ASampleThatFailsDoesNotFailTheRun) {
  const Parts parts{.task = std::make_shared<Regression>(TaskOptions{.sample_fails = true})};
  const std::string text = train(parts, {.max_steps = 1, .batch_size = 4}, {.sinks = {}});
  EXPECT_THAT(text, HasSubstr("\n\nno sample: nothing can be drawn\n\nnext: "));
}

TEST_F(Logging, NaNHasNoSignOnTheScreen) {
  const Parts parts{.task = std::make_shared<Regression>(TaskOptions{.not_a_number_at = 1})};
  const std::string text =
      train(parts, {.max_steps = 2, .batch_size = 4, .stop_on_nonfinite_loss = false},
            {.every_n_steps = 1, .sinks = {}});
  EXPECT_THAT(text, AllOf(HasSubstr("last nan, best nan"), Not(HasSubstr("-nan"))));
}

TEST_F(Logging, UnknownSinksAreRefusedNearestFirst) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml("{sinks: [recordin]}", "test.yaml", diagnostics);
  config::resolve(config::declaration<LoggingConfig>(), std::move(tree), diagnostics);
  EXPECT_THAT(
      diagnostics.text(),
      HasSubstr("unknown sink 'recordin'; did you mean 'recording'? There are: recording, "));
}

TEST_F(Logging, WithoutSinksOnlyTheScreensRemain) {
  const std::string text = train({}, {.max_steps = 1, .batch_size = 4}, {.sinks = {}});
  EXPECT_THAT(calls, IsEmpty());
  EXPECT_THAT(text, HasSubstr("finished at step 1"));
}

}  // namespace
}  // namespace phalanx::tiny
