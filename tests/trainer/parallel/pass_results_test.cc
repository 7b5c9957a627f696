// SPDX-License-Identifier: Apache-2.0
// The results of one forward pass in several backward passes, in FSDP, against one rank.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/parallel/pass_models.h"
#include "tests/trainer/parallel/ways.h"
#include "trainer/tensors/random.h"

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
  seed_everything(3);
  Forked plain;
  plain.to(at::kDouble);
  seed_everything(3);
  Forked model;
  model.to(at::kDouble);
  const auto engine = way.wrap(model, ranks);
  std::vector<NamedParameter> locals;
  for (const auto& parameter : parameters_of(model)) locals.push_back(engine->local(parameter));
  const std::vector<NamedParameter> expected = parameters_of(plain);
  for (int64_t i = 0; i < kSteps; ++i) {
    const auto phase = static_cast<double>(4 * i);
    for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
      step(
          plain, [](const auto& pass) { return pass(); }, phase + static_cast<double>(rank));
    }
    step(
        model, [&](const auto& pass) { return engine->run_tensors(pass, /*synchronize=*/true); },
        phase + static_cast<double>(ranks.rank()));
    for (size_t p = 0; p < expected.size(); ++p) {
      at::Tensor& gradient = expected[p].tensor.mutable_grad();
      gradient = gradient.div(static_cast<double>(ranks.world_size()));
      const at::Tensor& found = locals[p].tensor.grad();
      const std::string what = fmt::format("step {}, the gradient of {}", i, locals[p].name);
      require(found.defined(), what);
      require_close(found, part_of(gradient, *locals[p].shard), way.tolerance, what);
    }
    fsdp::testing::descend(locals);
    fsdp::testing::descend(expected);
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
