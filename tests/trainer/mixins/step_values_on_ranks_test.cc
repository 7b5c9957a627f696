// SPDX-License-Identifier: Apache-2.0
// The gradient norms that a mixin adds to the log are those of one rank.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/trainer/loop/dealt.h"
#include "tests/trainer/loop/spy.h"
#include "tests/trainer/mixins/group_norms.h"
#include "tests/trainer/mixins/run_dir.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/metrics/sink.h"
#include "trainer/mixins/logging_mixin.h"
#include "trainer/mixins/parallel_mixin.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

constexpr int64_t kSteps = 4;
constexpr int64_t kSamples = 20;

// The norm of each group by step, as the first rank logs it.
std::vector<double> logged;

class NormsSink : public Sink {
 public:
  using Config = NoFields;
  explicit NormsSink(Config) {}

  void open(const RunDescription&, std::optional<int64_t>) override {}
  void write(const Record& record) override {
    for (const auto& [name, value] : record.fields) {
      if (name.starts_with("grad_norm/")) logged.push_back(std::get<double>(value));
    }
  }
};

REGISTER_SINK("norms", NormsSink);

/// The tiny regression, with its samples dealt out to the ranks.
class Shared : public Regression {
 public:
  Shared() : Regression({.data = {.samples = kSamples}}) {}

  std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) override {
    return std::make_unique<Dealt>(Regression::build_data(phase, request), request);
  }
};

using Logged = Trainer<ParallelMixin, LoggingMixin, GroupNorms, Spy>;

void train(World& world, const RunDir& run, bool use_fsdp) {
  logged.clear();
  const Parts parts{.task = std::make_shared<Shared>(),
                    .optimizer = std::make_shared<Descent>(0.01)};
  TrainerSetup setup = make_setup(
      parts, {.max_steps = kSteps, .batch_size = 4 / world.ranks().world_size()},
      {.name = "tiny", .exp_dir = run.path().string(), .use_double_weight_precision = true},
      {{"parallel", {}, config::write(ParallelConfig{.use_fsdp = use_fsdp})},
       {"logging", {}, config::write(LoggingConfig{.every_n_steps = 1, .sinks = {"norms"}})},
       {"group_norms", {}, config::Node::map()},
       {"spy", {}, config::Node::map()}});
  setup.ranks = world.ranks();
  setup.device = world.device();
  Logged(std::move(setup)).train();
}

class AddedValuesOnRanks : public ::testing::TestWithParam<bool> {};

TEST_P(AddedValuesOnRanks, AreThoseOfOneRank) {
  const RunDir run;
  // Ranks are processes of their own: a file hands over what one has logged.
  const std::string file = (run.path() / "expected").string();
  const auto one = in_ranks(1, [&](World& world) {
    train(world, run, false);
    require(logged.size() == 2 * kSteps, "each step has both norms");
    std::ofstream stream(file);
    stream.precision(17);
    for (const double norm : logged) stream << norm << ' ';
  });
  ASSERT_EQ(one.message, "");
  const auto two = in_ranks(2, [&](World& world) {
    train(world, run, GetParam());
    if (!world.ranks().is_first()) return require(logged.empty(), "the first rank alone logs");
    std::ifstream stream(file);
    size_t i = 0;
    for (double expected = 0; stream >> expected; ++i) {
      require(i < logged.size() && std::abs(logged[i] - expected) <= 1e-12 * expected,
              "norm " + std::to_string(i) + " is that of one rank");
    }
    require(i == 2 * kSteps && logged.size() == i, "there are as many");
  });
  EXPECT_EQ(two.message, "");
}

INSTANTIATE_TEST_SUITE_P(, AddedValuesOnRanks, ::testing::Bool(), [](const auto& info) {
  return info.param ? "fully_sharded" : "replicated";
});

}  // namespace
}  // namespace phalanx::tiny
