// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/kept_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using Parts = std::vector<std::vector<ShardedTensorView>>;

Parts parts_of(int64_t elements, const std::string& name = "weight") {
  return {{whole_tensor(name, tensors::zeros({elements}))}, {}};
}

TEST(KeptPlan, IsMadeOnceForWhatStaysTheSame) {
  KeptPlan kept;
  int made = 0;
  const auto plan_of = [&](const Parts& parts) {
    return kept.get(brought_to_plan(parts, "host", {}), Ranks(), [&] {
      ++made;
      return WritePlan{.chunk_bytes = static_cast<uint64_t>(made)};
    });
  };
  EXPECT_EQ(plan_of(parts_of(3))->chunk_bytes, 1U);
  EXPECT_EQ(plan_of(parts_of(3))->chunk_bytes, 1U);
  EXPECT_EQ(plan_of(parts_of(4))->chunk_bytes, 2U);
  EXPECT_EQ(plan_of(parts_of(3))->chunk_bytes, 3U) << "of the save before alone";
}

TEST(KeptPlan, DependsOnAllThatIsBrought) {
  const std::string one = brought_to_plan(parts_of(3), "host", {});
  EXPECT_EQ(one, brought_to_plan(parts_of(3), "host", {}));
  EXPECT_NE(one, brought_to_plan(parts_of(4), "host", {}));
  EXPECT_NE(one, brought_to_plan(parts_of(3, "bias"), "host", {}));
  EXPECT_NE(one, brought_to_plan(parts_of(3), "another", {}));
  EXPECT_NE(one, brought_to_plan(parts_of(3), "host", {.piece_bytes = 1 << 20}));
  Parts parts = parts_of(3);
  std::swap(parts[0], parts[1]);
  EXPECT_NE(one, brought_to_plan(parts, "host", {}));
  parts = parts_of(3);
  parts[0][0].replicas = {0, 1};
  EXPECT_NE(one, brought_to_plan(parts, "host", {}));
  parts = parts_of(3);
  parts[0][0].box = TensorBox{{0}, {3}};
  EXPECT_NE(one, brought_to_plan(parts, "host", {}));
}

TEST(KeptPlan, IsMadeAgainByAllWhereOneRankHoldsOther) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    KeptPlan kept;
    int made = 0;
    const auto make = [&] {
      ++made;
      ranks.barrier();
      return WritePlan();
    };
    for (const int64_t elements : {3, 3, 4}) {
      const int64_t here = ranks.is_first() ? 3 : elements;
      kept.get(brought_to_plan(parts_of(here), "host", {}), ranks, make);
    }
    require(made == 2, "all ranks make it again");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
