// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/order_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>

#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/fsdp/fsdp.h"

namespace phalanx::fsdp::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr auto kTimeout = std::chrono::milliseconds(1500);

struct Ended {
  std::string message;
  double seconds = 0;
};

/// How two ranks end that take so many steps, `pass` telling what a rank does in a step.
Ended train(int steps, const std::function<Pass(int step, int64_t rank)>& pass,
            ShardingStrategy strategy = ShardingStrategy::full_shard) {
  const auto begin = Clock::now();
  const auto outcome = in_ranks(2, [&](World& world) {
    Net net;
    FsdpOptions options;
    options.order_timeout = kTimeout;
    FullyShardedDataParallel fsdp(net, world.ranks(), strategy, options);
    for (int step = 0; step < steps; ++step) {
      world.ranks().set_activity("step " + std::to_string(step));
      const at::Tensor rows = Net::wave({3, kInputs}, step).to(at::kFloat);
      fsdp.forward([&] { return net.loss(rows, pass(step, world.ranks().rank())); }).backward();
    }
  });
  return {outcome.message, std::chrono::duration<double>(Clock::now() - begin).count()};
}

/// Rank 1 leaves the unit "optional" out, from a step on.
std::function<Pass(int, int64_t)> leaves_out(int from) {
  return [from](int step, int64_t rank) {
    return Pass{.with_optional = step < from || rank == 0, .calls_twice = false};
  };
}

TEST(OrderCheck, NamesRanksAndUnitWhereTheyPartInTheFirstPass) {
  const Ended ended = train(2, leaves_out(0));
  EXPECT_THAT(ended.message,
              AllOf(HasSubstr("do not go the same way"), HasSubstr("in step 0"),
                    HasSubstr("unit optional"), HasSubstr("rank 0"), HasSubstr("rank 1")));
  EXPECT_LT(ended.seconds, 10);
}

TEST(OrderCheck, NamesTheRankThatLeavesTheOrderLater) {
  const Ended ended = train(5, leaves_out(3));
  EXPECT_THAT(ended.message,
              AllOf(HasSubstr("in step 3"), HasSubstr("rank 1"), HasSubstr("unit optional"),
                    HasSubstr("in the pass before"), HasSubstr("order_timeout")));
  EXPECT_LT(ended.seconds, 10);
}

TEST(OrderCheck, SeesItWhereNothingIsGathered) {
  const Ended ended = train(5, leaves_out(3), ShardingStrategy::no_shard);
  EXPECT_THAT(ended.message, AllOf(HasSubstr("rank 1"), HasSubstr("unit optional")));
  EXPECT_LT(ended.seconds, 10);
}

TEST(OrderCheck, LetsAllRanksLeaveTheOrderTogether) {
  const Ended ended = train(12, [](int step, int64_t) {
    return Pass{.with_optional = step % 3 != 0, .calls_twice = step % 2 == 0};
  });
  EXPECT_EQ(ended.message, "");
}

}  // namespace
}  // namespace phalanx::fsdp::testing
