// SPDX-License-Identifier: Apache-2.0
// When post_localSGD reduces within groups; tests/parity/mlp_parity.py compares values with
// Python's.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "tests/trainer/parallel/ddp_options_of.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/parallel/ddp/ddp.h"

namespace phalanx {
namespace {

/// One weight, whose gradient is the rank's number where ranks are alone, and else their mean.
struct Slope {
  explicit Slope(const Ranks& its_ranks)
      : ranks(its_ranks),
        ddp(prepare_ddp(*module, ranks,
                        ddp_options_of("comm_hook: {name: post_localSGD, start_localSGD_iter: 2, "
                                       "period: 1, subgroup_size: 1}"))) {}

  bool is_alone() {
    const auto rank = static_cast<float>(ranks.rank());
    module->zero_grad();
    ddp->forward([&] { return module->forward(torch::full({1, 1}, rank)).sum(); }).backward();
    const auto gradient = module->weight.grad().item<float>();
    require(gradient == rank || gradient == 0.5F, fmt::format("a gradient of {}", gradient));
    return gradient == rank;
  }

  Ranks ranks;
  torch::nn::Linear module{torch::nn::LinearOptions(1, 1).bias(false)};
  std::unique_ptr<DistributedDataParallel> ddp;
};

// A step may have several backward passes that reduce, as a critic's and a generator's: averaging
// counts steps, and groups must not begin earlier than it does.
TEST(PostLocalSgd, BeginsAtItsStepWhateverTheBackwardPasses) {
  const auto body = [](World& world) {
    Slope slope(world.ranks());
    for (int64_t step = 0; step < 4; ++step) {
      for (int64_t pass = 0; pass < 2; ++pass) {
        require(slope.is_alone() == (step >= 2), fmt::format("step {}, pass {}", step, pass));
      }
      slope.ddp->after_update();
    }
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

TEST(PostLocalSgd, GoesOnAtTheStepOfItsState) {
  const auto body = [](World& world) {
    Slope slope(world.ranks());
    Stateful* const state = slope.ddp->comm_hook()->kept_states().at(0).state;
    require(state->json() == R"({"updates":0})", state->json());
    state->restore(R"({"iteration":9,"updates":1})");  // with a count that earlier versions kept
    require(!slope.is_alone(), "step 1");
    slope.ddp->after_update();
    require(slope.is_alone(), "step 2");
    require(state->json() == R"({"updates":2})", state->json());
  };
  EXPECT_EQ(in_ranks(2, body), RankOutcome{});
}

}  // namespace
}  // namespace phalanx
