// SPDX-License-Identifier: Apache-2.0
// A step that is bad on one of two ranks is stopped at, skipped or undone by both.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/loop/dealt.h"
#include "tests/trainer/loop/planted.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/run_dir.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/mixins/guards_mixin.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/tensors/random.h"

namespace phalanx::tiny {
namespace {

using ::testing::HasSubstr;
using Guarded = Trainer<ParallelMixin, GuardsMixin, CheckpointMixin, Spy>;

constexpr int64_t kBadStep = 8;
constexpr int64_t kSteps = 12;
constexpr int64_t kSamples = 20;  // five steps an epoch
const GuardsConfig kOff;

GuardsConfig guards(OnBadStep on_bad_step) {
  return {.on_nonfinite = on_bad_step,
          .on_spike = on_bad_step,
          .loss_factor = 1e4,
          .grad_norm_factor = 1e4,
          .window = 5};
}

struct Case {
  const char* name;
  bool use_fsdp;
  double factor;
};

/// The planted regression, with its samples dealt out to the ranks.
class Shared : public Planted {
 public:
  explicit Shared(std::map<std::size_t, double> factors)
      : Planted(std::move(factors), {.data = {.samples = kSamples}}) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    return std::make_unique<Dealt>(Planted::build_data(phase, request), request);
  }
};

/// What a rank has seen.
struct Outcome {
  std::shared_ptr<Shared> task;
  std::shared_ptr<Descent> optimizer = std::make_shared<Descent>(0.01);
  std::vector<double> losses;  ///< This rank's share of each.
  std::vector<bool> skipped;
  State undone;  ///< Where the run has gone back to, with the place in the data.
};

class GuardsOnRanks : public ::testing::TestWithParam<Case> {
 protected:
  // Trains in a folder; with `factor` rank 1's loss is multiplied in the bad step. The state, if
  // there is one, is where the run goes on.
  Outcome train(World& world, const std::string& folder, const GuardsConfig& config,
                std::optional<double> factor, int64_t steps = kSteps,
                const std::optional<State>& from = {}) const {
    spy = {};
    seed_everything(7 + world.ranks().rank());
    std::filesystem::create_directories(run_.path() / folder);
    Outcome outcome;
    std::map<std::size_t, double> planted;
    if (factor && !world.ranks().is_first()) planted[kBadStep] = *factor;
    outcome.task = std::make_shared<Shared>(planted);
    spy.at_step_undone = [&](TrainerBase& trainer) { outcome.undone = trainer.state(); };
    if (from) spy.at_restore = [&](TrainerBase& trainer) { trainer.restore(*from); };
    const Parts parts{
        .task = outcome.task, .model = make_model(0.25), .optimizer = outcome.optimizer};
    TrainerSetup setup = make_setup(
        parts, {.max_steps = steps, .batch_size = 2},
        {.name = "tiny",
         .exp_dir = (run_.path() / folder).string(),
         .use_double_weight_precision = true},
        {{"parallel", {}, config::write(ParallelConfig{.use_fsdp = GetParam().use_fsdp})},
         {"guards", {}, config::write(config)},
         {"checkpoint", {}, config::write(CheckpointConfig{.save_every_n_steps = 3})},
         {"spy", {}, config::Node::map()}});
    setup.ranks = world.ranks();
    setup.device = world.device();
    Guarded trainer(std::move(setup));
    trainer.train();
    for (const StepResult& result : spy.results) {
      outcome.losses.push_back(result.losses().front().second);
      outcome.skipped.push_back(result.is_skipped);
    }
    return outcome;
  }

  RunDir run_;
};

TEST_P(GuardsOnRanks, BothSkipTheStep) {
  const RankOutcome ended = in_ranks(2, [&](World& world) {
    const Outcome out = train(world, "run", guards(OnBadStep::skip), GetParam().factor);
    require(out.optimizer->rates.size() == kSteps - 1, "the optimizer has moved in the others");
    for (int64_t step = 1; step <= kSteps; ++step) {
      require(out.skipped[step - 1] == (step == kBadStep), "one step is skipped");
      require(step == kBadStep || std::isfinite(out.losses[step - 1]), "the others are as ever");
    }
  });
  EXPECT_EQ(ended.message, "");
}

TEST_P(GuardsOnRanks, BothGoBackAndOnAsARunThatNeverMetTheBatches) {
  const RankOutcome ended = in_ranks(2, [&](World& world) {
    const Outcome plain = train(world, "plain", kOff, {});
    const Outcome out = train(world, "run", guards(OnBadStep::rollback), GetParam().factor);
    require(out.undone.step == 6 && out.undone.samples == 4 * kBadStep,
            "the run goes back to the second checkpoint, behind the bad step's samples");
    require(out.losses.size() == kBadStep - 1 + kSteps - 6, "and on from there");
    require(std::equal(plain.task->trained.begin(), plain.task->trained.end(),
                       out.task->trained.begin()),
            "each batch comes once, in the order of a run without guards");

    train(world, "without", kOff, {}, 6);
    const Outcome without = train(world, "without", kOff, {}, kSteps, out.undone);
    const std::vector<double> rest(out.losses.begin() + kBadStep - 1, out.losses.end());
    require(rest == without.losses, "the losses are those of a run without the batches");
    require(out.optimizer->gradients.back() == without.optimizer->gradients.back(),
            "and so are the gradients");
  });
  EXPECT_EQ(ended.message, "");
}

TEST_P(GuardsOnRanks, BothStop) {
  const RankOutcome ended = in_ranks(2, [&](World& world) {
    std::string message;
    try {
      train(world, "run", guards(OnBadStep::stop), GetParam().factor);
    } catch (const CommunicationError&) {
      throw;
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    require(spy.results.size() == kBadStep - 1, "that step does not end");
    const auto messages = world.ranks().all_gather(message);
    require(messages[0] == messages[1], "both say the same: " + messages[0] + "; " + messages[1]);
    throw std::runtime_error(message);
  });
  EXPECT_THAT(ended.message,
              HasSubstr(std::isfinite(GetParam().factor) ? "has jumped" : "the loss is nan"));
}

INSTANTIATE_TEST_SUITE_P(
    , GuardsOnRanks,
    ::testing::Values(Case{"spike_in_ddp", false, 1e8}, Case{"spike_in_fsdp", true, 1e8},
                      Case{"nan_in_ddp", false, std::numeric_limits<double>::quiet_NaN()},
                      Case{"nan_in_fsdp", true, std::numeric_limits<double>::quiet_NaN()}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace phalanx::tiny
