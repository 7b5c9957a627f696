// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/used_parameters.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx::fsdp::testing {
namespace {

std::string failure(const std::function<void(const Ranks&)>& body) {
  return in_ranks(2, [&](World& world) { body(world.ranks()); }).message;
}

void wait_for(const Ranks& ranks, const std::string& key) {
  require(ranks.store().get(key, std::chrono::seconds(20)).has_value(), key);
}

TEST(UsedParameters, AreThoseThatAnyRankHasUsed) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              UsedParameters used(ranks);
              const bool is_first = ranks.is_first();
              for (int step = 0; step < 3; ++step) {
                used.start({is_first, !is_first, false});
                used.finish();
                require(used.is_used(0) && used.is_used(1), "what one of them has used");
                require(!used.is_used(2), "what none has used");
              }
            }),
            "");
}

// The other rank takes part only when this one is through.
TEST(UsedParameters, AreKnownAtOnceToWhoHasUsedAll) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              UsedParameters used(ranks);
              if (!ranks.is_first()) wait_for(ranks, "the first is through");
              used.start({true, true, ranks.is_first()});
              used.finish();
              require(used.is_used(0) && used.is_used(1) && used.is_used(2), "all");
              if (ranks.is_first()) ranks.store().set("the first is through", "");
            }),
            "");
}

TEST(UsedParameters, OfAStepAreNotThoseOfTheOneBefore) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              UsedParameters used(ranks);
              for (int step = 0; step < 6; ++step) {
                const bool uses_both = step % 2 == 0;
                used.start({true, uses_both});
                used.finish();
                require(used.is_used(0) && used.is_used(1) == uses_both,
                        "step " + std::to_string(step));
              }
            }),
            "");
}

}  // namespace
}  // namespace phalanx::fsdp::testing
