// SPDX-License-Identifier: Apache-2.0
// The results of one forward pass in several backward passes, in FSDP, against one rank.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/trainer/parallel/beside_one_rank.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/parallel/pass_models.h"
#include "tests/trainer/parallel/ways.h"

namespace phalanx {
namespace {

constexpr int64_t kSteps = 2;

using Run = std::function<std::vector<at::Tensor>(const std::function<std::vector<at::Tensor>()>&)>;

/// One result's backward pass, and that of the other one together with another pass, which does not
/// call the other one's unit.
void step(Forked& model, const Run& run, double phase) {
  const at::Tensor rows = fsdp::testing::Net::wave({3, fsdp::testing::kWidth}, phase);
  const auto both = run([&] {
    return std::vector{model.loss_of_left(rows), model.loss_of_right(rows)};
  });
  both[0].backward();
  const auto next = run([&] { return std::vector{model.loss_of_left(rows.add(1))}; });
  both[1].add(next[0]).backward();
}

void require_as_on_one_rank(const Way& way, const Ranks& ranks) {
  BesideOneRank<Forked> both(way, ranks);
  for (int64_t i = 0; i < kSteps; ++i) {
    const auto phase = static_cast<double>(4 * i);
    for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
      step(
          both.plain, [](const auto& pass) { return pass(); }, phase + static_cast<double>(rank));
    }
    step(
        both.model,
        [&](const auto& pass) { return both.engine->run_tensors(pass, /*synchronize=*/true); },
        phase + static_cast<double>(ranks.rank()));
    both.divide_expected_gradients();
    const std::string what = fmt::format("step {}", i);
    for (const NamedParameter& local : both.locals) {
      require(local.tensor.grad().defined(), what + ": " + local.name + " has a gradient");
    }
    both.require_gradients(way.tolerance, what);
    both.descend();
  }
}

// What the other result still waits for must neither be lost nor come a step later.
TEST(PassResults, GoBackwardApartWithAnotherPassBetween) {
  for (const auto strategy : {ShardingStrategy::full_shard, ShardingStrategy::shard_grad_op,
                              ShardingStrategy::no_shard}) {
    const Way way = fsdp_of("", strategy);
    const auto body = [&](World& world) { require_as_on_one_rank(way, world.ranks()); };
    EXPECT_EQ(in_ranks(way.ranks, body), RankOutcome{}) << way.name;
  }
}

}  // namespace
}  // namespace phalanx
