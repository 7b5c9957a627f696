// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/fake_ranks.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "trainer/ranks/collectives/agreement.h"
#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr auto kFloat = c10::ScalarType::Float;

/// Rank 2 of 4.
struct FakeRanks : ::testing::Test {
  std::shared_ptr<CollectiveLog> log = std::make_shared<CollectiveLog>();
  Ranks ranks = fake_ranks(2, 4, 2, log);
};

std::vector<float> values(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel()};
}

TEST_F(FakeRanks, HaveAPlace) {
  EXPECT_EQ(ranks.rank(), 2);
  EXPECT_EQ(ranks.world_size(), 4);
  EXPECT_EQ(ranks.local_rank(), 0);
  EXPECT_EQ(ranks.local_world_size(), 2);
  EXPECT_THROW(fake_ranks(4, 4, 2, log), std::invalid_argument);
}

TEST_F(FakeRanks, ReduceAsIfAllHeldTheSame) {
  const auto reduced = [&](Reduction reduction) {
    const at::Tensor tensor = at::full({2}, 3.0F);
    ranks.all_reduce(tensor, reduction);
    return values(tensor);
  };
  EXPECT_THAT(reduced(Reduction::sum), ElementsAre(12, 12));
  EXPECT_THAT(reduced(Reduction::average), ElementsAre(3, 3));
  EXPECT_THAT(reduced(Reduction::product), ElementsAre(81, 81));
  EXPECT_THAT(reduced(Reduction::minimum), ElementsAre(3, 3));
  EXPECT_THAT(reduced(Reduction::maximum), ElementsAre(3, 3));
}

TEST_F(FakeRanks, GatherOwnValuesIntoEveryPlace) {
  const at::Tensor all = at::arange(8, at::kFloat);
  ranks.all_gather(all, all.narrow(0, 4, 2));
  EXPECT_THAT(values(all), ElementsAre(4, 5, 4, 5, 4, 5, 4, 5));
  const at::Tensor none = at::empty({0});
  ranks.all_gather(none, none);
}

TEST_F(FakeRanks, ScatterAndExchangeOwnParts) {
  const at::Tensor part = at::empty({2});
  ranks.reduce_scatter(part, at::arange(8, at::kFloat));
  EXPECT_THAT(values(part), ElementsAre(16, 20));
  const at::Tensor exchanged = at::empty({8});
  ranks.all_to_all(exchanged, at::arange(8, at::kFloat));
  EXPECT_THAT(values(exchanged), ElementsAre(4, 5, 4, 5, 4, 5, 4, 5));
  at::Tensor input = at::arange(8, at::kFloat);
  at::Tensor output = at::empty({2});
  process_group(ranks)->_reduce_scatter_base(output, input)->wait();
  EXPECT_THAT(values(output), ElementsAre(16, 20));
}

TEST_F(FakeRanks, TransferTheirOwnValues) {
  const at::Tensor tensor = at::full({2}, 3.0F);
  ranks.broadcast(tensor, 1);
  EXPECT_THAT(values(tensor), ElementsAre(3, 3));
  ranks.receive(tensor, 1);
  EXPECT_THAT(values(tensor), ElementsAre(0, 0)) << "nobody has sent anything";
  ranks.send(at::full({2}, 5.0F), 1, 7);
  ranks.receive(tensor, 3, 7);
  EXPECT_THAT(values(tensor), ElementsAre(5, 5));
  ranks.receive(tensor, 3, 8);
  EXPECT_THAT(values(tensor), ElementsAre(0, 0)) << "with another tag";
}

TEST_F(FakeRanks, AgreeOnTexts) {
  EXPECT_THAT(ranks.all_gather("text"), ElementsAre("text", "text", "text", "text"));
  EXPECT_EQ(ranks.broadcast("text", 3), "text");
  EXPECT_NO_THROW(require_agreement(ranks, {{"the config", "a: 1\n"}}));
}

TEST_F(FakeRanks, HaveAStoreOfTheirOwn) {
  ranks.store().set("key", "value");
  EXPECT_EQ(ranks.store().get("key", std::chrono::milliseconds(0)), "value");
  EXPECT_EQ(ranks.store().add("number", 2), 8) << "the three others have added it too";
  EXPECT_EQ(ranks.store().set_if_absent("key", "other"), "value");
  EXPECT_FALSE(fake_ranks(2, 4, 2, log).store().contains("key"));
}

TEST_F(FakeRanks, LeaveAFutureForDdp) {
  std::vector<at::Tensor> tensors{at::full({2}, 3.0F)};
  const auto future = process_group(ranks)->allreduce(tensors)->getFuture();
  EXPECT_TRUE(future->completed());
  EXPECT_THAT(values(future->value().toTensorVector().at(0)), ElementsAre(12, 12));
}

TEST_F(FakeRanks, ChangeNoVersionCounter) {
  const at::Tensor tensor = at::full({2}, 3.0F);
  const auto version = tensor._version();
  ranks.all_reduce(tensor);
  EXPECT_EQ(tensor._version(), version);
}

TEST_F(FakeRanks, LogWhatIsAsked) {
  ranks.all_reduce(at::full({3}, 1.0F), Reduction::maximum);
  const at::Tensor all = at::empty({8});
  ranks.all_gather(all, all.narrow(0, 0, 2));
  ranks.reduce_scatter(at::empty({2}), all);
  ranks.broadcast(at::full({5}, 1, at::kLong), 3);
  ranks.send(all, 0);
  ranks.receive(all, 1);
  ranks.barrier();
  EXPECT_THAT(
      log->collectives(),
      ElementsAre(
          Collective{.kind = CollectiveKind::all_reduce,
                     .input_bytes = 12,
                     .output_bytes = 12,
                     .dtype = kFloat,
                     .reduction = Reduction::maximum},
          Collective{.kind = CollectiveKind::all_gather,
                     .input_bytes = 8,
                     .output_bytes = 32,
                     .dtype = kFloat},
          // On the host parts are exchanged, and reduced by their owner.
          Collective{.kind = CollectiveKind::all_to_all,
                     .input_bytes = 32,
                     .output_bytes = 32,
                     .dtype = kFloat},
          Collective{.kind = CollectiveKind::broadcast,
                     .input_bytes = 40,
                     .output_bytes = 40,
                     .dtype = c10::ScalarType::Long,
                     .peer = 3},
          Collective{.kind = CollectiveKind::send, .input_bytes = 32, .dtype = kFloat, .peer = 0},
          Collective{
              .kind = CollectiveKind::receive, .output_bytes = 32, .dtype = kFloat, .peer = 1},
          Collective{.kind = CollectiveKind::barrier}));
  log->clear();
  EXPECT_TRUE(log->collectives().empty());
}

TEST_F(FakeRanks, MakeSubgroups) {
  EXPECT_FALSE(ranks.subgroup(std::vector<int64_t>{0, 1}));
  const auto pair = ranks.subgroup(std::vector<int64_t>{3, 2});
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->rank(), 1);
  EXPECT_EQ(pair->world_size(), 2);
  const auto alone = ranks.subgroup(std::vector<int64_t>{2});
  ASSERT_TRUE(alone && alone->is_single_rank());
  const at::Tensor tensor = at::full({2}, 3.0F);
  pair->all_reduce(tensor);
  alone->all_reduce(tensor);
  EXPECT_THAT(values(tensor), ElementsAre(6, 6));
  // The barrier belongs to making the group, which is returned once all its ranks have connected.
  ASSERT_EQ(log->collectives().size(), 2U);
  EXPECT_EQ(log->collectives()[0].kind, CollectiveKind::barrier);
  EXPECT_EQ(log->collectives()[0].group, "world/1");
  EXPECT_EQ(to_string(log->collectives()[1]),
            "all-reduce on world/1: 8 to 8 bytes of Float, reduction 0");
  EXPECT_THAT(log->groups(), ElementsAre(Pair("world", GroupPlace{.place = 2, .size = 4}),
                                         Pair("world/1", GroupPlace{.place = 1, .size = 2})));
}

// LibTorch's barrier has a tensor that all threads of the process share.
TEST(FakeRanksOnThreads, MeetWithoutDisturbingEachOther) {
  std::atomic<int> failures = 0;
  const auto meet = [&] {
    const Ranks ranks = fake_ranks(0, 2, 2, std::make_shared<CollectiveLog>());
    try {
      for (int i = 0; i < 30000; ++i) ranks.barrier();
    } catch (const std::exception&) {
      ++failures;
    }
  };
  {
    const std::jthread other(meet);
    meet();
  }
  EXPECT_EQ(failures, 0);
}

TEST(GroupRosterTest, PutsGroupsTogether) {
  GroupRoster roster;
  for (const int64_t rank : {0, 1, 3}) {
    const auto log = std::make_shared<CollectiveLog>();
    fake_ranks(rank, 4, 4, log).subgroup(std::vector<int64_t>{3, 0});
    roster.add(rank, *log);
  }
  EXPECT_THAT(roster.members(), ElementsAre(Pair("world", ElementsAre(0, 1, -1, 3)),
                                            Pair("world/0", ElementsAre(3, 0))));
}

TEST(GroupRosterTest, FindsRanksThatDisagree) {
  const auto log_of = [](const std::vector<int64_t>& members, int64_t rank) {
    const auto log = std::make_shared<CollectiveLog>();
    fake_ranks(rank, 4, 4, log).subgroup(members);
    return log;
  };
  GroupRoster roster;
  roster.add(0, *log_of({0, 1}, 0));
  EXPECT_THROW(roster.add(2, *log_of({2, 3}, 2)), std::logic_error);
  EXPECT_THROW(roster.add(1, *log_of({0, 1, 2}, 1)), std::logic_error);
}

}  // namespace
}  // namespace phalanx
