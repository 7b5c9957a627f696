// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/checkpoint_mixin.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/retention/room.h"
#include "trainer/checkpoint/save/save_error.h"
#include "trainer/loop/save_signal.h"
#include "trainer/tensors/random.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

// The spy comes last: it sees what the checkpoint mixin has done.
using Saving = Trainer<CheckpointMixin, Spy>;

class Checkpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    spy = {};
  }

  std::unique_ptr<Saving> make(const Parts& parts, const TrainingConfig& training,
                               const CheckpointConfig& checkpoint) {
    return std::make_unique<Saving>(make_setup(
        parts, training, {.name = "tiny", .exp_dir = run_.path().string()},
        {{"checkpoint", {}, config::write(checkpoint)}, {"spy", {}, config::Node::map()}}));
  }

  // The checkpoints that a run of so many steps leaves.
  std::vector<std::string> left_by(int64_t steps, const CheckpointConfig& checkpoint) {
    make(Parts{}, {.max_steps = steps, .batch_size = 4}, checkpoint)->train();
    return run_.checkpoints();
  }

  std::string model_in(const std::string& checkpoint) const {
    std::ifstream file(run_.path() / "checkpoints" / checkpoint / "model.safetensors");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  RunDir run_;
};

CheckpointConfig every(int64_t steps) {
  return {.save_every_n_steps = steps, .keep_last = std::nullopt};
}

TEST_F(Checkpoints, AreSavedEveryNStepsAndAtTheEnd) {
  EXPECT_THAT(left_by(5, every(2)), ElementsAre("step-00000002", "step-00000004", "step-00000005"));
}

TEST_F(Checkpoints, AreSavedByTime) {
  EXPECT_THAT(left_by(3, {.save_every_n_steps = std::nullopt,
                          .save_every_n_seconds = config::Interval{std::chrono::milliseconds(0)},
                          .keep_last = std::nullopt}),
              SizeIs(3));
}

TEST_F(Checkpoints, AreNotSavedBeforeTheTimeHasCome) {
  EXPECT_THAT(left_by(3, {.save_every_n_steps = std::nullopt,
                          .save_every_n_seconds = config::Interval{std::chrono::hours(1)}}),
              ElementsAre("step-00000003"));
}

TEST_F(Checkpoints, AreSavedAtTheEndAlone) {
  EXPECT_THAT(left_by(3, {.save_every_n_steps = std::nullopt}), ElementsAre("step-00000003"));
}

TEST_F(Checkpoints, OldOnesGo) {
  EXPECT_THAT(left_by(5, {.save_every_n_steps = 1, .keep_last = 2}),
              ElementsAre("step-00000004", "step-00000005"));
}

TEST_F(Checkpoints, TheNewestAloneMayStay) {
  EXPECT_THAT(left_by(5, {.save_every_n_steps = 1, .only_save_most_recent = true}),
              ElementsAre("step-00000005"));
}

TEST_F(Checkpoints, EveryNthStays) {
  EXPECT_THAT(left_by(7, {.save_every_n_steps = 1, .keep_last = 1, .keep_every_n_steps = 3}),
              ElementsAre("step-00000003", "step-00000006", "step-00000007"));
}

TEST_F(Checkpoints, ASignalAsksForOneAndTheRunGoesOn) {
  SaveSignal::install();
  // The third step is its epoch's last, the sixth the run's.
  spy.at_step_end = [](TrainerBase& trainer) {
    if (trainer.state().step % 2 == 1) std::raise(SIGUSR1);
  };
  for (const bool async : {false, true}) {
    std::filesystem::remove_all(run_.path() / "checkpoints");
    CheckpointConfig config = every(100);
    config.async = async;
    ::testing::internal::CaptureStdout();
    EXPECT_THAT(left_by(6, config), ElementsAre("step-00000002", "step-00000004", "step-00000006"));
    EXPECT_EQ(::testing::internal::GetCapturedStdout(),
              "saved step 2 (SIGUSR1)\nsaved step 4 (SIGUSR1)\nsaved step 6 (SIGUSR1)\n");
  }
}

TEST_F(Checkpoints, ThatNoSignalAskedForAreNotTold) {
  ::testing::internal::CaptureStdout();
  left_by(2, every(1));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(Checkpoints, InTheBackgroundAreTheSame) {
  CheckpointConfig background = every(1);
  background.async = true;
  const auto names = left_by(4, background);
  EXPECT_THAT(names, SizeIs(4));
  std::vector<std::string> bytes;
  for (const auto& name : names) bytes.push_back(model_in(name));
  std::filesystem::remove_all(run_.path() / "checkpoints");
  left_by(4, every(1));
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(model_in(names[i]), bytes[i]);
  EXPECT_NE(bytes[0], bytes[1]);
}

TEST_F(Checkpoints, OneThatCannotBeSavedEndsTheRunOrDoesNot) {
  const auto folder = run_.path() / "checkpoints";
  const auto away = run_.path() / "away";
  for (const bool async : {false, true}) {
    for (const auto on_error : {OnSaveError::stop, OnSaveError::warn}) {
      std::filesystem::remove_all(folder);
      spy = {};
      spy.at_step_end = [&](TrainerBase& trainer) {
        if (trainer.state().step == 1) {
          std::filesystem::rename(folder, away);
          std::ofstream(folder) << "a file in its place";
        }
        if (trainer.state().step == 4) {
          // At once: a save may be under way.
          ASSERT_EQ(renameat2(AT_FDCWD, away.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE),
                    0);
        }
      };
      CheckpointConfig config = every(2);
      config.async = async;
      config.on_error = on_error;
      std::string message = "went on";
      try {
        left_by(6, config);
      } catch (const SaveError& error) {
        message = error.what();
      }
      if (on_error == OnSaveError::warn) {
        EXPECT_EQ(message, "went on");
        EXPECT_THAT(run_.checkpoints(),
                    AllOf(Contains("step-00000006"), Not(Contains("step-00000002"))));
      } else {
        EXPECT_THAT(message, HasSubstr("Not a directory"));
        // What is saved in the background fails when the step has ended.
        EXPECT_EQ(spy.results.size() > 1, async);
      }
      std::filesystem::remove_all(away);
    }
  }
}

TEST_F(Checkpoints, ALastOneThatIsNotSavedIsAnErrorThatNamesTheNewest) {
  const auto folder = run_.path() / "checkpoints";
  const auto away = run_.path() / "away";
  for (const bool async : {false, true}) {
    std::filesystem::remove_all(folder);
    spy = {};
    spy.at_step_end = [&](TrainerBase& trainer) {
      if (trainer.state().step != 3) return;
      while (!std::filesystem::exists(folder / "latest")) continue;  // In the background.
      std::filesystem::rename(folder, away);
      std::ofstream(folder) << "a file in its place";
    };
    CheckpointConfig config = every(2);
    config.async = async;
    config.while_saving = WhileSaving::wait;
    config.on_error = OnSaveError::warn;
    EXPECT_THAT([&] { left_by(5, config); },
                ThrowsMessage<SaveError>(AllOf(HasSubstr("of the last step, 5, was not saved"),
                                               HasSubstr("step 2 is the newest on disk"))))
        << async;
    std::filesystem::remove(folder);
    std::filesystem::rename(away, folder);
    EXPECT_THAT(run_.checkpoints(), Contains("step-00000002"));
  }
}

// To set the room of a file system that is nearly full.
uint64_t bytes_in(const std::filesystem::path& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

TEST_F(Checkpoints, TakeNoMoreOfTheDiskThanRandomSettingsAsked) {
  std::mt19937 random(3);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % most) + 1; };
  const auto folder = run_.path() / "checkpoints";
  for (int round = 0; round < 12; ++round) {
    std::filesystem::remove_all(folder);
    CheckpointConfig config{.save_every_n_steps = up_to(3), .keep_last = up_to(4)};
    if (random() % 4 == 0) config.keep_last = std::nullopt;
    if (random() % 2 == 0) config.keep_every_n_steps = up_to(5);
    if (random() % 4 == 0) config.only_save_most_recent = true;
    config.async = random() % 3 == 0;
    spy = {};
    const int64_t before = random() % 2 == 0 ? up_to(5) : 0;
    if (before > 0) left_by(before, config);
    const std::vector<int64_t> there =
        before > 0 ? committed_steps(folder) : std::vector<int64_t>();
    Retention retention = config.retention();
    if (before > 0) retention.resumed_step = before;
    const int64_t last = before + up_to(14);
    const int64_t promised = checkpoints_to_come(
        retention, there,
        {.after = before, .last = last, .every = *config.save_every_n_steps, .are_all = true});
    const uint64_t found = before > 0 ? bytes_in(folder) : 0;
    uint64_t most = 0;
    spy.at_step_end = [&](TrainerBase&) {
      if (std::filesystem::exists(folder) && !config.async) most = std::max(most, bytes_in(folder));
    };
    left_by(last, config);
    most = std::max(most, bytes_in(folder));
    const uint64_t largest = [&] {
      uint64_t bytes = 0;
      for (const auto& name : run_.checkpoints()) bytes = std::max(bytes, bytes_in(folder / name));
      return bytes;
    }();
    constexpr uint64_t kNames = 256;  // `latest`
    EXPECT_LE(most, found + static_cast<uint64_t>(promised) * (largest + kNames) + kNames)
        << "round " << round << ", " << before << " to " << last << " steps";
  }
}

TEST_F(Checkpoints, AStepIsNotSavedTwice) {
  struct stat saved = {};
  const std::string manifest = run_.path() / "checkpoints/step-00000002/manifest.json";
  spy.at_step_end = [&](TrainerBase& trainer) {
    if (trainer.state().step != 2) return;
    ASSERT_EQ(stat(manifest.c_str(), &saved), 0) << "saved with the step";
    std::raise(SIGTERM);
  };
  EXPECT_THAT(left_by(9, every(2)), ElementsAre("step-00000002"));
  struct stat after = {};
  ASSERT_EQ(stat(manifest.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, saved.st_ino);
}

TEST_F(Checkpoints, ASignalBeforeTheFirstStepSavesNothingAndTheRunBeginsAnew) {
  spy.at_training_start = [](TrainerBase&) { std::raise(SIGTERM); };
  ::testing::internal::CaptureStdout();
  EXPECT_THAT(left_by(2, every(1)), IsEmpty());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "checkpoint: none is saved, as no step was trained: the next start begins anew\n");
  SetUp();
  EXPECT_THAT(left_by(2, every(1)), ElementsAre("step-00000001", "step-00000002"));
  // One that has a checkpoint keeps it.
  StopSignal::install();
  spy.at_training_start = [](TrainerBase&) { std::raise(SIGTERM); };
  EXPECT_THAT(left_by(3, every(1)), ElementsAre("step-00000001", "step-00000002"));
}

TEST_F(Checkpoints, ASignalSavesTheStepItEnds) {
  spy.at_step_end = [](TrainerBase& trainer) {
    if (trainer.state().step == 3) std::raise(SIGINT);
  };
  EXPECT_THAT(left_by(9, every(100)), ElementsAre("step-00000003"));
}

// What a run of ten steps was, to compare with.
struct Course {
  std::vector<NamedValues> losses;
  std::vector<double> weights;
  State end;
};

class Resuming : public Checkpoints, public ::testing::WithParamInterface<int64_t> {
 protected:
  // A step is two micro-batches of two of ten samples; dropout draws random numbers.
  Course train(TaskOptions task, const CheckpointConfig& checkpoint, uint64_t seed) {
    spy = {};
    seed_everything(seed);
    Parts parts{.task = std::make_shared<Regression>(std::move(task)),
                .model = make_model(/*dropout=*/0.3)};
    const auto trainer = make(
        parts, {.max_steps = 10, .batch_size = 2, .gradient_accumulation_steps = 2}, checkpoint);
    try {
      trainer->train();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the task failed");
    }
    Course course{.losses = {}, .weights = weights_of(*parts.model), .end = trainer->state()};
    for (const auto& result : spy.results) course.losses.push_back(result.losses());
    return course;
  }
};

TEST_P(Resuming, ContinuesTheVerySameLosses) {
  const int64_t failure = GetParam();
  const Course whole = train({}, {.save_every_n_steps = std::nullopt}, /*seed=*/1);
  std::filesystem::remove_all(run_.path() / "checkpoints");
  train({.fails_at = failure}, every(3), /*seed=*/1);
  const auto saved = static_cast<size_t>((failure - 1) / 3 * 3);
  ASSERT_THAT(run_.checkpoints(), SizeIs(saved / 3));

  const Course rest = train({}, every(3), /*seed=*/77);
  ASSERT_THAT(rest.losses, SizeIs(10 - saved));
  EXPECT_TRUE(std::equal(rest.losses.begin(), rest.losses.end(),
                         whole.losses.begin() + static_cast<std::ptrdiff_t>(saved)));
  EXPECT_EQ(rest.weights, whole.weights);
  EXPECT_EQ(rest.end.step, whole.end.step);
  EXPECT_EQ(rest.end.epoch, whole.end.epoch);
  EXPECT_EQ(rest.end.epoch_samples, whole.end.epoch_samples);
  EXPECT_EQ(rest.end.tokens, whole.end.tokens);
}

// Epochs have three steps: all that is saved is saved at the boundary of one.
INSTANTIATE_TEST_SUITE_P(, Resuming, ::testing::Values(4, 6, 7, 10), [](const auto& info) {
  return "failed_in_step_" + std::to_string(info.param);
});

TEST_F(Checkpoints, ResumingInTheMidstOfAnEpochIsTheSameToo) {
  const TrainingConfig training{.max_steps = 5, .batch_size = 4};
  Parts whole;
  make(whole, training, every(100))->train();
  std::filesystem::remove_all(run_.path() / "checkpoints");

  TrainingConfig shorter = training;
  shorter.max_steps = 2;
  make(Parts{}, shorter, every(100))->train();
  Parts rest;
  make(rest, training, every(100))->train();
  EXPECT_THAT(rest.task->trained, SizeIs(3));
  EXPECT_EQ(weights_of(*rest.model), weights_of(*whole.model));
}

TEST_F(Checkpoints, AFinishedRunStaysFinished) {
  const TrainingConfig one_epoch{.max_epochs = 1, .batch_size = 4};
  make(Parts{}, one_epoch, every(1))->train();
  spy = {};
  const Parts again;
  const auto trainer = make(again, one_epoch, every(1));
  trainer->train();
  EXPECT_THAT(again.task->trained, IsEmpty());
  EXPECT_THAT(spy.events, ElementsAre("setup", "restore", "training start", "training end"));
  EXPECT_EQ(trainer->state().epoch, 1);
}

TEST_F(Checkpoints, AFinishedRunGoesOnWhereTheEndIsMoved) {
  make(Parts{}, {.max_epochs = 1, .batch_size = 4}, every(1))->train();
  const Parts more;
  make(more, {.max_epochs = 2, .batch_size = 4}, every(1))->train();
  ASSERT_THAT(more.task->trained, SizeIs(3));
  EXPECT_EQ(more.task->trained.front().front(), sample_at(0, 1, 10)) << "the second epoch";
}

TEST_F(Checkpoints, ResumeNeverRefusesAFolderWithCheckpoints) {
  CheckpointConfig never = every(1);
  never.resume = Resume::never;
  make(Parts{}, {.max_steps = 2, .batch_size = 4}, never)->train();
  const auto trainer = make(Parts{}, {.max_steps = 4, .batch_size = 4}, never);
  EXPECT_THAT(
      [&] { trainer->train(); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("checkpoint.resume=auto"),
                                     HasSubstr("step-00000002"), HasSubstr(run_.path().string()))));
}

TEST_F(Checkpoints, OtherDataIsRefused) {
  make(Parts{}, {.max_steps = 2, .batch_size = 4}, every(1))->train();
  const Parts other{
      .task = std::make_shared<Regression>(TaskOptions{.data = {.fingerprint = "other"}})};
  const auto trainer = make(other, {.max_steps = 4, .batch_size = 4}, every(1));
  EXPECT_THAT([&] { trainer->train(); }, ThrowsMessage<UserError>(HasSubstr("training data")));
  EXPECT_THAT(run_.checkpoints(), SizeIs(2));
}

// A task with a file, or with none.
struct Carrying : Regression {
  explicit Carrying(Attachments carried) : carried(std::move(carried)) {}
  Attachments attachments() const override { return carried; }

  Attachments carried;
};

Parts carrying(const Attachments& attachments) {
  return {.task = std::make_shared<Carrying>(attachments)};
}

TEST_F(Checkpoints, CarryTheTasksFilesAndARunGoesOnWithThem) {
  const Attachments first{{.name = "words.txt", .content = "a b"}};
  for (const bool async : {false, true}) {
    std::filesystem::remove_all(run_.path() / "checkpoints");
    CheckpointConfig config = every(1);
    config.async = async;
    // What older programs have saved carries none.
    make(Parts{}, {.max_steps = 1, .batch_size = 4}, config)->train();
    make(carrying(first), {.max_steps = 2, .batch_size = 4}, config)->train();
    EXPECT_THAT(run_.names("checkpoints/step-00000001/attachments"), IsEmpty());
    EXPECT_THAT(run_.names("checkpoints/step-00000002/attachments"), ElementsAre("words.txt"));

    for (const Attachments& other : {Attachments{{.name = "words.txt", .content = "a c"}}, {}}) {
      const Parts parts = carrying(other);
      const auto trainer = make(parts, {.max_steps = 4, .batch_size = 4}, config);
      EXPECT_THAT([&] { trainer->train(); }, ThrowsMessage<UserError>(HasSubstr("'words.txt' is")));
      EXPECT_THAT(parts.task->trained, IsEmpty());
    }
    make(carrying(first), {.max_steps = 4, .batch_size = 4}, config)->train();
    EXPECT_THAT(run_.checkpoints(), SizeIs(4));
  }
}

TEST_F(Checkpoints, AFileThatCannotBeCarriedIsRefusedBeforeTraining) {
  const Parts parts = carrying({{.name = "a/b", .content = "x"}});
  const auto trainer = make(parts, {.max_steps = 2, .batch_size = 4}, every(1));
  EXPECT_THAT([&] { trainer->train(); }, ThrowsMessage<UserError>(HasSubstr("'a/b'")));
  EXPECT_THAT(parts.task->trained, IsEmpty());
}

TEST_F(Checkpoints, StepsOfAnotherSizeAreRefused) {
  make(Parts{}, {.max_steps = 2, .batch_size = 4}, every(1))->train();
  const auto trainer = make(Parts{}, {.max_steps = 4, .batch_size = 5}, every(1));
  EXPECT_THAT(
      [&] { trainer->train(); },
      ThrowsMessage<UserError>(HasSubstr("Set training.batch_size to one that fits: 4, 2, 1")));
}

TEST_F(Checkpoints, TheSameStepInOtherMicroBatchesGoesOn) {
  make(Parts{}, {.max_steps = 2, .batch_size = 4}, every(1))->train();
  const Parts finer;
  make(finer, {.max_steps = 3, .batch_size = 2, .global_batch_size = 4}, every(1))->train();
  EXPECT_THAT(finer.task->trained, ElementsAre(SizeIs(2))) << "the epoch's last two samples";
}

TEST_F(Checkpoints, AFileInPlaceOfTheFolderIsRefusedBeforeTraining) {
  std::ofstream(run_.path() / "checkpoints") << "a file";
  const Parts parts;
  const auto trainer = make(parts, {.max_steps = 2, .batch_size = 4}, every(1));
  EXPECT_THROW(trainer->train(), UserError);
  EXPECT_THAT(parts.task->trained, IsEmpty());
}

}  // namespace
}  // namespace phalanx::tiny
