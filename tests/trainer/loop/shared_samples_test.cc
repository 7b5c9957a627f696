// SPDX-License-Identifier: Apache-2.0
// Ranks that train with the same samples, of which the last one alone has losses and metrics: as
// stages of a pipeline.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/trainer/loop/measuring.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/parallel_engine.h"
#include "trainer/base/stop_signal.h"

namespace phalanx::tiny {
namespace {

/// Keeps a loss to the last rank. In a pass without gradients its value, but not its metrics, are
/// known to all.
class OnLast final : public ParallelEngine {
 public:
  explicit OnLast(bool is_last) : is_last_(is_last) {}

  Loss run(c10::function_ref<Loss()> forward, bool /*synchronize*/) override {
    Loss loss = forward();
    if (is_last_) return loss;
    loss.take_metrics();
    if (!at::GradMode::is_enabled()) return loss;
    std::vector<at::Tensor> nothing;
    for (const auto& [name, value] : loss.parts()) nothing.push_back(value * 0);
    return std::move(loss).with_values(nothing);
  }
  std::vector<at::Tensor> run_tensors(c10::function_ref<std::vector<at::Tensor>()> forward,
                                      bool /*synchronize*/) override {
    return forward();
  }

 private:
  bool is_last_;
};

template <class Derived>
class Sharing : public Mixin<Derived, Sharing> {
 public:
  static constexpr std::string_view kSection = "sharing";
  static constexpr std::string_view kMeaning = "keeps losses to the last rank";
  using Config = NoFields;
  using Hooks = HookList<Setup>;

  explicit Sharing(Config) {}

  void on_setup() {
    TrainerBase& trainer = this->trainer();
    const Ranks& ranks = trainer.ranks();
    if (ranks.is_single_rank()) return;
    const bool is_last = ranks.rank() + 1 == ranks.world_size();
    trainer.wrap(trainer.task_model().wrapped_by(std::make_shared<OnLast>(is_last)));
  }
};

/// What each step, and then a validation, tells on a rank.
struct Told {
  std::vector<NamedValues> losses;
  std::vector<NamedValues> metrics;
  std::vector<int64_t> samples;
  std::vector<int64_t> tokens;
  NamedValues validation;
};

Told train(const Ranks& ranks) {
  Told told;
  spy = {};
  spy.at_step_start = [](TrainerBase& trainer) { trainer.request_metrics(); };
  spy.at_step_end = [&](TrainerBase& trainer) {
    told.losses.push_back(trainer.global_losses(spy.results.back()));
    told.metrics.push_back(trainer.step_metrics());
    told.samples.push_back(spy.results.back().samples);
    told.tokens.push_back(spy.results.back().tokens);
  };
  TrainerSetup setup =
      make_setup(Parts{.task = std::make_shared<Measuring>()},
                 {.max_steps = 1, .batch_size = 2, .gradient_accumulation_steps = 3},
                 {.name = "tiny", .exp_dir = "nowhere"},
                 {{"sharing", {}, config::Node::map()}, {"spy", {}, config::Node::map()}});
  setup.ranks = ranks;
  setup.data_ranks = Ranks();
  Trainer<Sharing, Spy> trainer(std::move(setup));
  trainer.train();
  told.validation = trainer.validation_means(std::nullopt).value();
  return told;
}

// One step: the weights of ranks without a loss do not move here.
TEST(SharedSamples, CountOnce) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Told alone = train(Ranks());
    const Told here = train(world.ranks());
    require(here.losses == alone.losses, "losses");
    require(here.metrics == alone.metrics, "metrics");
    require(here.samples == alone.samples && here.samples.front() == 6, "samples");
    require(here.tokens == alone.tokens, "tokens");
    require(value_of(here.validation, "seen", -1) == 5, "the metrics of a validation");
    const bool is_last = world.ranks().rank() == 2;
    require(!is_last || here.validation == alone.validation, "a validation");
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(SharedSamples, StopAllRanksByASignalToOne) {
  const auto outcome = in_ranks(2, [](World& world) {
    StopSignal::install();
    spy = {};
    spy.at_step_end = [&](TrainerBase& trainer) {
      if (trainer.state().step == 2 && world.ranks().is_first()) std::raise(SIGUSR2);
    };
    TrainerSetup setup = make_setup(
        Parts(), {.max_steps = 1000, .batch_size = 2}, {.name = "tiny", .exp_dir = "nowhere"},
        {{"sharing", {}, config::Node::map()}, {"spy", {}, config::Node::map()}});
    setup.ranks = world.ranks();
    setup.data_ranks = Ranks();
    Trainer<Sharing, Spy> trainer(std::move(setup));
    trainer.train();
    const auto steps = static_cast<int64_t>(spy.states.size());
    require(steps < 10, "it stops soon");
    require(world.ranks().broadcast(std::to_string(steps)) == std::to_string(steps), "all at once");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx::tiny
