// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tests/tensors.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/ranks/refused.h"
#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Ranks, AllReduce) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const auto mine = static_cast<double>(ranks.rank() + 2);  // 2, 3, 4
    const std::array<std::pair<Reduction, double>, 5> cases{{{Reduction::sum, 9},
                                                             {Reduction::average, 3},
                                                             {Reduction::product, 24},
                                                             {Reduction::minimum, 2},
                                                             {Reduction::maximum, 4}}};
    for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong}) {
      for (const auto& [reduction, expected] : cases) {
        if (type == at::kLong && reduction == Reduction::average) continue;
        const at::Tensor values = tensors::full({2, 3}, mine, type);
        ranks.all_reduce(values, reduction);
        require(values.equal(tensors::full({2, 3}, expected, type)), toString(type));
      }
    }
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Ranks, GatherScatterBroadcastExchange) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    const at::Tensor all = tensors::empty({3, 4}, at::kFloat);
    ranks.all_gather(all, tensors::full({4}, static_cast<double>(rank), at::kFloat));
    for (int64_t r = 0; r < 3; ++r) require(all[r].eq(r).all().item<bool>(), "all_gather");

    const at::Tensor in_place = tensors::full({3, 2}, -1.0, at::kFloat);
    in_place[rank].fill_(rank);
    ranks.all_gather(in_place, in_place[rank]);
    for (int64_t r = 0; r < 3; ++r) require(in_place[r].eq(r).all().item<bool>(), "in place");

    const at::Tensor part = tensors::empty({2}, at::kFloat);
    ranks.reduce_scatter(part, tensors::arange(6, at::kFloat).add(rank));
    const at::Tensor sums = tensors::arange(6, at::kFloat).mul(3).add(3);
    require(part.equal(sums.slice(0, 2 * rank, 2 * rank + 2)), "reduce_scatter");

    const at::Tensor word = tensors::full({5}, static_cast<double>(rank), at::kDouble);
    ranks.broadcast(word, 2);
    require(word.eq(2).all().item<bool>(), "broadcast");

    const at::Tensor received = tensors::empty({3}, at::kLong);
    ranks.all_to_all(received, tensors::arange(3, at::kLong).add(10 * rank));
    require(received.equal(tensors::arange(3, at::kLong).mul(10).add(rank)), "all_to_all");

    require(ranks.broadcast(std::string("of ") + std::to_string(rank), 1) == "of 1", "text");
    const auto texts = ranks.all_gather(std::string(static_cast<size_t>(rank), 'x'));
    require(texts == std::vector<std::string>{"", "x", "xx"}, "texts");
    ranks.barrier();
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Ranks, SendAndReceive) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    const at::Tensor tensor = tensors::full({7}, ranks.is_first() ? 5.0 : 0.0, at::kFloat);
    if (ranks.is_first()) {
      ranks.send(tensor, 1);
    } else {
      ranks.receive(tensor, 0);
    }
    require(tensor.eq(5).all().item<bool>(), "what was sent");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Ranks, SubgroupsWorkBesideEachOther) {
  const auto outcome = in_ranks(4, [](World& world) {
    const Ranks& ranks = world.ranks();
    const auto even = ranks.subgroup(std::array<int64_t, 2>{0, 2});
    const auto odd = ranks.subgroup(std::array<int64_t, 2>{3, 1});
    require(even.has_value() == (ranks.rank() % 2 == 0), "members");
    const Ranks& mine = even ? *even : *odd;
    require(mine.world_size() == 2, "size");
    if (odd) require(mine.rank() == (ranks.rank() == 3 ? 0 : 1), "the given order");
    const at::Tensor sum = tensors::full({1}, static_cast<double>(ranks.rank()), at::kFloat);
    mine.all_reduce(sum);
    require(sum.item<float>() == (even ? 2 : 4), "sum of the group");
    mine.store().set("whose", even ? "even" : "odd");
    mine.barrier();
    require(mine.store().get("whose", std::chrono::seconds(1)) == (even ? "even" : "odd"), "keys");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Ranks, ReduceBitsOfIntegers) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const std::array<std::pair<Reduction, int64_t>, 3> cases{
        {{Reduction::bitwise_and, 8 & 12 & 10},
         {Reduction::bitwise_or, 8 | 12 | 10},
         {Reduction::bitwise_xor, 8 ^ 12 ^ 10}}};
    const std::array<int64_t, 3> own{8, 12, 10};
    for (const auto type : {at::kLong, at::kInt, at::kByte}) {
      for (const auto& [reduction, expected] : cases) {
        const auto mine = own[static_cast<size_t>(ranks.rank())];
        const at::Tensor values = tensors::full({3}, mine, type);
        ranks.all_reduce(values, reduction);
        require(values.equal(tensors::full({3}, expected, type)), toString(type));
      }
    }
    require(refused([&] { ranks.all_reduce(tensors::zeros({1}), Reduction::bitwise_xor); }) ==
                "all-reduce: bitwise xor is for integers, not for Float",
            "bits of a number");
    require(refused([&] {
              ranks.all_reduce(tensors::zeros({1}, at::kLong), Reduction::average);
            }) == "all-reduce: average is for floating-point numbers, not for Long",
            "the mean of integers");
    require(refused([&] { ranks.broadcast(tensors::zeros({1}), 3); }) ==
                "broadcast: there is no rank 3 among 3",
            "a rank that is not there");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Ranks, ASubgroupHasANameAndATimeoutOfItsOwn) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    const std::array<int64_t, 2> both{1, 0};
    const Ranks experts =
        *ranks.subgroup(both, {.name = "experts", .timeout = std::chrono::seconds(2)});
    require(experts.timeout() == std::chrono::seconds(2), "its timeout");
    if (ranks.is_first()) {
      experts.set_activity("waiting");
      try {
        experts.receive(tensors::zeros({1}), 0);
        throw std::logic_error("nothing was sent");
      } catch (const CommunicationError& error) {
        const std::string text = error.what();
        const std::string expected =
            "receive (of 1 elements from rank 0) of the group 'experts' of 2 ranks failed in "
            "waiting: ";
        require(text.starts_with(expected), text);
      }
    }
    ranks.barrier();
    require(refused([&] {
              ranks.subgroup(std::array<int64_t, 2>{0, 2});
            }) == "subgroup: there is no rank 2 among 2",
            "a rank that is not there");
    require(refused([&] {
              ranks.subgroup(std::array<int64_t, 2>{1, 1});
            }) == "subgroup: rank 1 is named twice",
            "a rank twice");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

void require_place(const Ranks& ranks, int64_t local_rank, int64_t local_world_size,
                   const std::string& group) {
  require(ranks.local_rank() == local_rank, group + ": the local rank");
  require(ranks.local_world_size() == local_world_size, group + ": the local world size");
}

TEST(Ranks, SubgroupsCountTheirOwnRanksOfAHost) {
  const auto outcome = in_ranks(4, [](World& world) {
    const int64_t rank = world.ranks().rank();
    const auto three = world.ranks().subgroup(std::array<int64_t, 3>{3, 0, 2});
    require(three.has_value() == (rank != 1), "members");
    if (three) require_place(*three, three->rank(), 3, "three");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Ranks, SubgroupsKnowWhichOfTheirRanksShareAHost) {
  const auto on_two_hosts = [](World& world) {
    const int64_t rank = world.ranks().rank();
    require_place(world.ranks(), rank % 2, 2, "the world");
    require_place(world.ranks().separate("another thread"), rank % 2, 2, "all of it");

    for (const int64_t first : {0, 1}) {
      const auto across = world.ranks().subgroup(std::array<int64_t, 2>{first, first + 2});
      if (across) require_place(*across, 0, 1, "one of each host");
    }

    const auto three = world.ranks().subgroup(std::array<int64_t, 3>{3, 0, 2});
    if (!three) return;
    if (rank == 0) require_place(*three, 0, 1, "three");
    if (rank != 0) require_place(*three, rank == 3 ? 0 : 1, 2, "three");

    const auto nested = three->subgroup(std::array<int64_t, 2>{1, 0});
    if (nested) require_place(*nested, 0, 1, "ranks 0 and 3");
    const auto neighbours = three->subgroup(std::array<int64_t, 2>{2, 0});
    if (neighbours) require_place(*neighbours, rank == 2 ? 0 : 1, 2, "ranks 2 and 3");
  };
  EXPECT_EQ(in_ranks(4, on_two_hosts, {}, /*ranks_per_host=*/2), RankOutcome{});
}

// Else the first to return could drop the group, and end the connections that others still make.
TEST(Ranks, AGroupIsReturnedOnceAllHaveConnected) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    KeyValueStore& store = ranks.store();
    MakeProcessGroup& make = const_cast<Ranks::Group&>(ranks.group()).make;
    make = [&store, make](auto with, int64_t rank, int64_t world_size, auto timeout) {
      auto group = make(std::move(with), rank, world_size, timeout);
      if (rank == 1) {
        const auto early = store.get("rank 0 has it", std::chrono::milliseconds(300));
        require(!early, "rank 0 waits for rank 1");
      }
      return group;
    };
    const auto both = ranks.subgroup(std::array<int64_t, 2>{0, 1});
    if (ranks.is_first()) store.set("rank 0 has it", "yes");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

// The notes' example: one process sets a key, the other gets it.
TEST(Ranks, StoreOfTwoProcesses) {
  const auto outcome = in_ranks(2, [](World& world) {
    KeyValueStore& store = world.ranks().store();
    if (world.ranks().is_first()) {
      store.set("first_key", "first_value");
      require(store.get("answer", std::chrono::seconds(30)) == "42", "answer");
    } else {
      require(store.get("first_key", std::chrono::seconds(30)) == "first_value", "first_key");
      require(!store.contains("nothing"), "contains");
      require(!store.get("nothing", std::chrono::milliseconds(0)), "get without waiting");
      store.set("answer", "42");
    }
    store.add("sum", world.ranks().rank() + 1);
    world.ranks().barrier();
    require(store.add("sum", 0) == 3, "sum");
    const std::string winner = store.set_if_absent("w", std::to_string(world.ranks().rank()));
    require(winner == store.get("w", std::chrono::seconds(30)), "set_if_absent");
    world.ranks().barrier();
    if (world.ranks().is_first()) store.remove("w");
    world.ranks().barrier();
    require(!store.contains("w"), "remove");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Ranks, AFailureOfTheFirstRankReachesAll) {
  const auto outcome = in_ranks(2, [](World& world) {
    world.ranks().set_activity("writing");
    try {
      on_first_rank(world.ranks(), [] { throw std::runtime_error("the disk is full"); });
    } catch (const CommunicationError& error) {
      require(!world.ranks().is_first(), "its own error is no CommunicationError");
      require(std::string(error.what()) == "rank 0 failed in writing: the disk is full",
              error.what());
      throw;
    }
  });
  EXPECT_EQ(outcome.message, "rank 0: the disk is full");
}

TEST(Ranks, ADeadPeerIsNoticedAtOnceAndNamed) {
  const auto outcome = in_ranks(2, [](World& world) {
    world.ranks().set_activity("step 3, forward");
    if (world.ranks().rank() == 1) ::_exit(7);
    world.ranks().all_reduce(tensors::full({4}, 1.0, at::kFloat));
  });
  EXPECT_EQ(outcome.exit_code, 7) << outcome.message;
  EXPECT_THAT(outcome.message, HasSubstr("rank 1 left with exit code 7"));
}

TEST(Ranks, AHungPeerIsNoticedAtTheTimeout) {
  const auto outcome = in_ranks(2,
                                [](World& world) {
                                  world.ranks().set_activity("step 3, forward");
                                  if (world.ranks().rank() == 1) ::pause();
                                  world.ranks().all_reduce(tensors::full({4}, 1.0, at::kFloat));
                                },
                                {.timeout = std::chrono::milliseconds(500)});
  EXPECT_THAT(outcome.message,
              AllOf(HasSubstr("rank 0: all-reduce (sum of 4 elements) of 2 ranks failed in step 3, "
                              "forward"),
                    HasSubstr("Timed out")));
}

void require_refused(const std::string& name, const std::function<void()>& operation) {
  const std::string message = refused(operation);
  require(message == name + ": the group of ranks has been closed", name + ": " + message);
}

void require_closed(const Ranks& ranks, KeyValueStore& store) {
  const at::Tensor tensor = tensors::full({2}, 1.0, at::kFloat);
  require_refused("all-reduce", [&] { ranks.all_reduce(tensor); });
  require_refused("all-gather", [&] { ranks.all_gather(tensor, tensor); });
  require_refused("reduce-scatter", [&] { ranks.reduce_scatter(tensor, tensor); });
  require_refused("broadcast", [&] { ranks.broadcast(tensor); });
  require_refused("all-to-all", [&] { ranks.all_to_all(tensor, tensor); });
  require_refused("send", [&] { ranks.send(tensor, 0); });
  require_refused("receive", [&] { ranks.receive(tensor, 0); });
  require_refused("barrier", [&] { ranks.barrier(); });
  require_refused("broadcast", [&] { ranks.broadcast(std::string("text")); });
  require_refused("all-gather", [&] { ranks.all_gather(std::string("text")); });
  require_refused("subgroup", [&] { ranks.subgroup(std::array<int64_t, 1>{0}); });
  require_refused("separate", [&] { ranks.separate("another thread"); });
  require_refused("process_group", [&] { process_group(ranks); });
  for (KeyValueStore* const each : {&store, &ranks.store()}) {
    require_refused("the store's set", [&] { each->set("key", "value"); });
    require_refused("the store's get", [&] { each->get("key", std::chrono::seconds(1)); });
    require_refused("the store's contains", [&] { each->contains("key"); });
    require_refused("the store's add", [&] { each->add("key", 1); });
    require_refused("the store's set_if_absent", [&] { each->set_if_absent("key", "value"); });
    require_refused("the store's remove", [&] { each->remove("key"); });
  }
}

TEST(Ranks, AClosedGroupSaysSo) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks kept = world.ranks();
    KeyValueStore& store = kept.store();
    const Ranks all = kept.separate("another thread");
    const Ranks nested = *all.subgroup(std::array<int64_t, 2>{1, 0});
    const auto alone = kept.subgroup(std::array<int64_t, 1>{0});
    world.close();
    require_closed(kept, store);
    for (const Ranks& of_it : {all, nested, alone.value_or(all)}) {
      require_closed(of_it, of_it.store());
    }
    require(kept.world_size() == 2 && nested.rank() == 1 - kept.rank(), "places");
    require(kept.activity() == "closing", "the activity");
    kept.close();
    kept.abort();
    throw std::runtime_error("as expected");  // else in_ranks would close it too
  });
  EXPECT_EQ(outcome.message, "as expected");
}

TEST(Ranks, AClosedSubgroupIsNotTheEndOfItsWorld) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks all = world.ranks().separate("another thread");
    all.barrier();
    all.close();
    require_closed(all, all.store());
    const at::Tensor sum = tensors::full({1}, 1.0, at::kFloat);
    world.ranks().all_reduce(sum);
    require(sum.item<float>() == 2, "the world's sum");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

}  // namespace
}  // namespace phalanx
