// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/tensors.h"
#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/ranks.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

TEST(RanksAlone, IsRankZeroOfOne) {
  const Ranks ranks;
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.world_size(), 1);
  EXPECT_TRUE(ranks.is_first());
  EXPECT_TRUE(ranks.is_single_rank());
  EXPECT_THROW(process_group(ranks), std::logic_error);
}

TEST(RanksAlone, OperationsAreTheIdentity) {
  const Ranks ranks;
  const at::Tensor values = tensors::arange(6, at::kFloat);
  const at::Tensor kept = values.clone();
  for (const auto reduction : {Reduction::sum, Reduction::average, Reduction::maximum}) {
    ranks.all_reduce(values, reduction);
  }
  ranks.broadcast(values);
  ranks.barrier();
  EXPECT_TRUE(values.equal(kept));
  const at::Tensor output = tensors::empty({6}, at::kFloat);
  for (const auto& operation : {&Ranks::start_all_gather, &Ranks::start_all_to_all}) {
    output.zero_();
    (ranks.*operation)(output, values).wait();
    EXPECT_TRUE(output.equal(kept));
  }
  output.zero_();
  ranks.reduce_scatter(output, values);
  EXPECT_TRUE(output.equal(kept));
}

TEST(RanksAlone, TextsAndKeys) {
  const Ranks ranks;
  EXPECT_EQ(ranks.broadcast(std::string("a")), "a");
  EXPECT_EQ(ranks.all_gather(std::string("a")), std::vector<std::string>{"a"});
  EXPECT_FALSE(ranks.store().contains("k"));
  EXPECT_EQ(ranks.store().get("k", std::chrono::milliseconds(0)), std::nullopt);
  EXPECT_EQ(ranks.store().set_if_absent("k", "1"), "1");
  EXPECT_EQ(ranks.store().set_if_absent("k", "2"), "1");
  ranks.store().remove("k");
  ranks.store().remove("k");
  EXPECT_FALSE(ranks.store().contains("k"));
  EXPECT_EQ(ranks.store().add("n", 3), 3);
  EXPECT_EQ(ranks.store().add("n", -1), 2);
}

TEST(RanksAlone, AFailureOnTheFirstRankIsItsOwn) {
  EXPECT_THROW(on_first_rank(Ranks(), [] { throw std::out_of_range("x"); }), std::out_of_range);
}

TEST(RanksAlone, DoNothingOnceTheyAreClosed) {
  const Ranks ranks;
  const Ranks same = ranks.separate("another thread");
  const at::Tensor values = tensors::arange(6, at::kFloat);
  ranks.store().set("k", "1");
  ranks.close();
  for (const Ranks& closed : {ranks, same}) {
    EXPECT_EQ(closed.rank(), 0);
    EXPECT_TRUE(closed.is_single_rank());
    EXPECT_THROW(closed.all_reduce(values), std::logic_error);
    EXPECT_THROW(closed.barrier(), std::logic_error);
    EXPECT_THROW(closed.broadcast(std::string("a")), std::logic_error);
    EXPECT_THROW(closed.store().contains("k"), std::logic_error);
    EXPECT_THROW(closed.separate("a third"), std::logic_error);
  }
}

}  // namespace
}  // namespace phalanx
