// SPDX-License-Identifier: Apache-2.0
// When a forward pass gathers the unit that comes next, as one rank of a world asks the others.

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/trainer/parallel/fsdp/models.h"
#include "trainer/api/module_hook.h"
#include "trainer/api/units.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/simulated/fake_ranks.h"

namespace phalanx::fsdp::testing {
namespace {

constexpr int64_t kRanks = 8;
constexpr std::array<int64_t, 4> kWidths{8, 13, 7, 24};
constexpr std::size_t kLayers = kWidths.size() - 1;
constexpr int64_t kNoneFrozen = -1;
constexpr std::optional<bool> kAutomatic;

int64_t gathers_in(const CollectiveLog& log) {
  const auto all = log.collectives();
  return std::ranges::count(all, CollectiveKind::all_gather, &Collective::kind);
}

/// Notes how many gathers had begun when a unit's own forward began.
class GatherCount final : public ModuleHook {
 public:
  GatherCount(const CollectiveLog& log, std::vector<int64_t>& counts)
      : log_(log), counts_(counts) {}

  std::vector<at::Tensor> around(HookedModule&, std::vector<at::Tensor> inputs,
                                 const ModuleForward& forward) override {
    counts_.push_back(gathers_in(log_));
    return forward(std::move(inputs));
  }

 private:
  const CollectiveLog& log_;
  std::vector<int64_t>& counts_;
};

/// For each pass, how many gathers had begun in it by each layer's forward; the root's is one.
std::vector<std::vector<int64_t>> gathers_by_layer(std::optional<bool> forward_prefetch,
                                                   int64_t passes) {
  const auto log = std::make_shared<CollectiveLog>();
  const Ranks ranks = fake_ranks(0, kRanks, kRanks, log);
  Stack stack(kWidths, kNoneFrozen);
  FsdpOptions options;
  options.forward_prefetch = forward_prefetch;
  FullyShardedDataParallel fsdp(stack, ranks, ShardingStrategy::full_shard, options);
  std::vector<int64_t> counts;
  for (const NamedHooked& unit : units(stack)) {
    unit.hooks->attach(std::make_shared<GatherCount>(*log, counts));
  }
  std::vector<std::vector<int64_t>> by_pass;
  for (int64_t pass = 0; pass < passes; ++pass) {
    const int64_t before = gathers_in(*log);
    fsdp.forward([&] { return stack.loss(); }).backward();
    for (int64_t& count : counts) count -= before;
    by_pass.push_back(std::exchange(counts, {}));
  }
  return by_pass;
}

const std::vector<int64_t> kWhenNeeded{2, 3, 4};
const std::vector<int64_t> kOneAhead{3, 4, 4};

TEST(ForwardPrefetch, BeginsInTheSecondPassByItself) {
  ASSERT_EQ(kWhenNeeded.size(), kLayers);
  EXPECT_EQ(gathers_by_layer(kAutomatic, 3),
            (std::vector<std::vector<int64_t>>{kWhenNeeded, kOneAhead, kOneAhead}));
}

TEST(ForwardPrefetch, IsAsTheConfigSays) {
  EXPECT_EQ(gathers_by_layer(false, 2),
            (std::vector<std::vector<int64_t>>{kWhenNeeded, kWhenNeeded}));
  EXPECT_EQ(gathers_by_layer(true, 2), (std::vector<std::vector<int64_t>>{kWhenNeeded, kOneAhead}));
}

/// Gathers of passes of which every other one leaves a unit out.
int64_t gathers_of_changing_passes(std::optional<bool> forward_prefetch) {
  const auto log = std::make_shared<CollectiveLog>();
  const Ranks ranks = fake_ranks(0, kRanks, kRanks, log);
  Net net;
  FsdpOptions options;
  options.forward_prefetch = forward_prefetch;
  FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard, options);
  const at::Tensor input = Net::wave({3, kInputs}, 0).to(at::kFloat);
  for (int64_t pass = 0; pass < 6; ++pass) {
    const Pass way{.with_optional = pass % 2 == 0, .calls_twice = false};
    fsdp.forward([&] { return net.loss(input, way); }).backward();
  }
  return gathers_in(*log);
}

TEST(ForwardPrefetch, EndsByItselfWherePassesDoNotRepeat) {
  const int64_t needed = gathers_of_changing_passes(false);
  EXPECT_EQ(gathers_of_changing_passes(kAutomatic), needed + 1) << "in vain: in the second pass";
  EXPECT_EQ(gathers_of_changing_passes(true), needed + 3) << "in vain: in every other pass";
}

/// Gathers of a use of the model, whose calls are other ones than in training.
int64_t gathers_of_use(std::optional<bool> forward_prefetch) {
  const auto log = std::make_shared<CollectiveLog>();
  const Ranks ranks = fake_ranks(0, kRanks, kRanks, log);
  Net net;
  FsdpOptions options;
  options.forward_prefetch = forward_prefetch;
  FullyShardedDataParallel fsdp(net, ranks, ShardingStrategy::full_shard, options);
  const at::Tensor input = Net::wave({3, kInputs}, 0).to(at::kFloat);
  for (int64_t pass = 0; pass < 2; ++pass) {
    fsdp.forward([&] { return net.loss(input, {}); }).backward();
  }
  const int64_t before = gathers_in(*log);
  const at::NoGradGuard no_grad;
  fsdp.use([&] { net.loss(input, {.with_optional = false}); });
  return gathers_in(*log) - before;
}

TEST(ForwardPrefetch, IsNotForUsesWhoseOrderNobodyCompares) {
  EXPECT_EQ(gathers_of_use(kAutomatic), gathers_of_use(false));
  EXPECT_GT(gathers_of_use(true), gathers_of_use(false));
}

}  // namespace
}  // namespace phalanx::fsdp::testing
