// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/deferred_values.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

// Small ones around one that is more than what is under way at a time.
class Net : public torch::nn::Module {
 public:
  Net() {
    for (int i = 0; i < 40; ++i) add("before" + std::to_string(i), 17 + i);
    add("large", 18 << 20);
    for (int i = 0; i < 40; ++i) add("after" + std::to_string(i), 1'000'000);
    register_buffer("ones", torch::ones({5}));
    register_parameter("present", torch::arange(3, torch::kFloat));
  }

 private:
  void add(const std::string& name, int64_t elements) {
    register_parameter(name, at::empty({elements}).normal_(0, 0.02));
  }
};

struct Built {
  std::shared_ptr<Net> net;
  std::shared_ptr<DeferredInit> deferred;
};

Built build(uint64_t seed) {
  Built built;
  seed_everything(seed);
  built.deferred = DeferredInit::record([&] { built.net = std::make_shared<Net>(); });
  return built;
}

std::string failure(const std::function<void(const Ranks&)>& body) {
  return in_ranks(2, [&](World& world) { body(world.ranks()); }).message;
}

// The values of a model that was built at once on rank 0.
void require_values_of_first(const Net& net) {
  seed_everything(7);
  const Net expected;
  const auto values = net.named_parameters();
  for (const auto& item : expected.named_parameters()) {
    require(values[item.key()].equal(item.value()), item.key());
  }
  require(net.named_buffers()["ones"].equal(torch::ones({5})), "the buffer");
}

uint64_t own_seed(const Ranks& ranks) { return ranks.is_first() ? 7 : 8; }

TEST(DeferredValues, AreThoseOfRankZeroOnEveryRank) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              const Built built = build(own_seed(ranks));
              broadcast_present(*built.net, ranks, true, built.deferred.get());
              draw_on_first_rank(*built.deferred, ranks,
                                 [](const c10::StorageImpl*, const at::Tensor&) { return true; });
              require_values_of_first(*built.net);
            }),
            "");
}

TEST(DeferredValues, AreNotDrawnOnTheOtherRanks) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              const Built built = build(own_seed(ranks));
              const auto state = rng_states();
              draw_on_first_rank(*built.deferred, ranks,
                                 [](const c10::StorageImpl*, const at::Tensor&) { return true; });
              const bool has_drawn = !rng_states().begin()->second.equal(state.begin()->second);
              require(has_drawn == ranks.is_first(), "random numbers are drawn on rank 0 alone");
            }),
            "");
}

TEST(DeferredValues, MayBeCopiedAndGivenUpOneByOne) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              const Built built = build(own_seed(ranks));
              std::set<const c10::StorageImpl*> seen;
              draw_on_first_rank(*built.deferred, ranks,
                                 [&](const c10::StorageImpl* storage, const at::Tensor& values) {
                                   require(seen.insert(storage).second, "each comes once");
                                   require(values.storage().data() != nullptr, "values are there");
                                   return false;
                                 });
              for (const auto& item : built.net->named_parameters()) {
                if (item.key() == "present") continue;
                require(item.value().storage().data() == nullptr, item.key());
                require(!built.deferred->is_pending(item.value()), item.key());
              }
            }),
            "");
}

}  // namespace
}  // namespace phalanx
