// SPDX-License-Identifier: Apache-2.0
// A rollback puts back each kept state, also one that the resumed checkpoint did not hold.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/trainer/loop/planted.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "trainer/base/stop_signal.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/mixins/averages_mixin.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/guards_mixin.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

using Guarded = Trainer<AveragesMixin, GuardsMixin, CheckpointMixin, Spy>;

const GuardsConfig kOff;
const GuardsConfig kRollback{.on_nonfinite = OnBadStep::rollback};
const AveragesConfig kEachStep{.method = Averages::swa};

class RollbackOfParts : public ::testing::Test {
 protected:
  void SetUp() override {
    StopSignal::install();
    spy = {};
  }

  // Trains to this step, saved every fourth; `bad_batch` of this process has no number as its loss.
  void train(int64_t steps, const GuardsConfig& guards, const AveragesConfig& averages,
             std::optional<std::size_t> bad_batch = {}) {
    std::map<std::size_t, double> planted;
    if (bad_batch) planted[*bad_batch] = std::numeric_limits<double>::quiet_NaN();
    Parts parts;
    parts.task = std::make_shared<Planted>(planted);
    Guarded trainer(
        make_setup(parts, {.max_steps = steps, .batch_size = 4},
                   {.name = "tiny", .exp_dir = run_.path().string()},
                   {{"averages", {}, config::write(averages)},
                    {"guards", {}, config::write(guards)},
                    {"checkpoint", {}, config::write(CheckpointConfig{.save_every_n_steps = 4})},
                    {"spy", {}, config::Node::map()}}));
    trainer.train();
  }

  std::filesystem::path folder(const char* step) const {
    return run_.path() / "checkpoints" / step;
  }

  std::map<std::string, std::string> parts_in(const char* step) const {
    return open_checkpoint(folder(step)).manifest.parts;
  }

  static std::string json_of(const TrainerBase& trainer, const std::string& name) {
    for (const NamedStateful& kept : trainer.kept_state()) {
      if (kept.name == name) return kept.state->json();
    }
    return "none";
  }

  RunDir run_;
};

TEST_F(RollbackOfParts, BeginsAnewWhatTheResumedCheckpointDidNotHold) {
  train(6, kOff, {});
  ASSERT_TRUE(parts_in("step-00000006").empty());
  std::string undone;
  spy.at_step_undone = [&](TrainerBase& trainer) { undone = json_of(trainer, "averages"); };
  train(8, kRollback, kEachStep, /*bad_batch=*/2);
  EXPECT_THAT(undone, HasSubstr("\"updates\":0"));
  EXPECT_THAT(parts_in("step-00000008").at("averages"), HasSubstr("\"updates\":2"));
}

TEST_F(RollbackOfParts, SavesTheResumedStepAnewOnlyWhereThatIsNeeded) {
  const auto at_start = [&](const GuardsConfig& guards, const AveragesConfig& averages) {
    spy = {};
    std::filesystem::remove_all(run_.path() / "checkpoints");
    train(6, guards, averages);
    const auto written = std::filesystem::last_write_time(folder("step-00000006"));
    bool is_anew = false;
    spy.at_training_start = [&](TrainerBase&) {
      is_anew = std::filesystem::last_write_time(folder("step-00000006")) != written;
    };
    train(7, guards, kEachStep);
    return is_anew;
  };
  EXPECT_TRUE(at_start(kRollback, {})) << "it lacks the averages";
  EXPECT_TRUE(at_start(kRollback, {.method = Averages::ema})) << "they begin anew";
  EXPECT_FALSE(at_start(kRollback, kEachStep));
  EXPECT_FALSE(at_start(kOff, {}));
}

TEST_F(RollbackOfParts, DoesNotGoBackToACheckpointThatLacksOne) {
  train(6, kOff, {});
  spy.at_step_start = [&](TrainerBase& trainer) {
    // The newest one is damaged: the next older is of the time before.
    if (trainer.state().step == 7) std::ofstream(folder("step-00000006") / "manifest.json");
  };
  EXPECT_THAT([&] { train(8, kRollback, kEachStep, /*bad_batch=*/1); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(StartsWith("the loss is nan. Guards would undo this step (rollback), but "),
                        HasSubstr("step-00000004 holds no state of averages, guards"))));
}

TEST_F(RollbackOfParts, SaysWhatIsBadWhereNoCheckpointIsGood) {
  spy.at_step_start = [&](TrainerBase& trainer) {
    if (trainer.state().step == 6) std::ofstream(folder("step-00000004") / "manifest.json");
  };
  EXPECT_THAT([&] { train(8, kRollback, kEachStep, /*bad_batch=*/6); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(StartsWith("the loss is nan. Guards would undo this step (rollback), but "),
                        HasSubstr("skipped step-00000004"))));
}

}  // namespace
}  // namespace phalanx::tiny
