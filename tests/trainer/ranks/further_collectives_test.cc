// SPDX-License-Identifier: Apache-2.0
// Collectives beside Ranks' own: their results, what is empty or uneven, and what they refuse.

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "tests/trainer/ranks/refused.h"
#include "trainer/ranks/collectives/coalesced.h"
#include "trainer/ranks/collectives/monitored_barrier.h"
#include "trainer/ranks/collectives/objects.h"
#include "trainer/ranks/collectives/one_rank.h"
#include "trainer/ranks/collectives/premultiplied_sum.h"
#include "trainer/ranks/collectives/transfers.h"
#include "trainer/ranks/collectives/uneven_all_gather.h"
#include "trainer/ranks/collectives/uneven_all_to_all.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

using Json = nlohmann::json;

void require_refused(const std::string& expected, const std::function<void()>& call) {
  const std::string message = refused(call);
  require(message == expected, message + " is: " + expected);
}

at::Tensor numbers(int64_t count, int64_t plus, at::ScalarType dtype = at::kDouble) {
  return tensors::arange(count, at::kLong).add(plus).to(dtype);
}

TEST(FurtherCollectives, OneRankGetsOrGives) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    const at::Tensor sum = numbers(2, rank);
    reduce(ranks, sum, 1);
    if (rank == 1) require(sum.equal(at::tensor({3.0, 6.0})), "reduce");
    // Also without elements, and with a dtype that Gloo cannot add.
    for (const int64_t count : {2, 0}) {
      for (const auto dtype : {at::kDouble, at::kBool}) {
        const at::Tensor all = rank == 2 ? tensors::empty({3, count}, dtype) : at::Tensor();
        gather(ranks, all, numbers(count, rank, dtype), 2);
        for (int64_t r = 0; rank == 2 && r < 3; ++r) {
          require(all[r].equal(numbers(count, r, dtype)), "gather");
        }
        const at::Tensor part = tensors::empty({count}, dtype);
        scatter(ranks, part, rank == 2 ? all : at::Tensor(), 2);
        require(part.equal(numbers(count, rank, dtype)), "scatter");
      }
    }
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, OneRankIsRefusedWhatDoesNotFit) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    const at::Tensor one = tensors::zeros({1});
    require_refused("reduce: there is no rank 2 among 2", [&] { reduce(ranks, one, 2); });
    require_refused("gather: there is no rank -1 among 2", [&] { gather(ranks, one, one, -1); });
    if (!ranks.is_first()) return;
    require_refused("gather: rank 0 has no tensor for all ranks' parts",
                    [&] { gather(ranks, {}, one, 0); });
    require_refused("scatter: 3 elements of Float are not those of 2 ranks with 1 of Float each",
                    [&] { scatter(ranks, one, tensors::zeros({3}), 0); });
    require_refused("gather: 2 elements of Long are not those of 2 ranks with 1 of Float each",
                    [&] { gather(ranks, tensors::zeros({2}, at::kLong), one, 0); });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, UnevenRows) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    for (const auto dtype : {at::kDouble, at::kShort, at::kComplexFloat}) {
      const auto all =
          uneven_all_gather(ranks, numbers(2 * rank, 10 * rank, dtype).view({rank, 2}));
      require(all.size() == 3, "one a rank");
      for (int64_t r = 0; r < 3; ++r) {
        require(all[static_cast<size_t>(r)].equal(numbers(2 * r, 10 * r, dtype).view({r, 2})),
                toString(dtype));
      }
    }
    for (const at::Tensor& part : uneven_all_gather(ranks, tensors::zeros({0, 4}))) {
      require(part.sizes() == at::IntArrayRef({0, 4}), "nothing on all ranks");
    }
    const at::Tensor received = tensors::empty({3 * rank}, at::kDouble);
    uneven_all_to_all(ranks, received, numbers(3, 10 * rank), {rank, rank, rank}, {0, 1, 2});
    const std::array<std::vector<double>, 3> expected{{{}, {0, 10, 20}, {1, 2, 11, 12, 21, 22}}};
    require(received.equal(at::tensor(expected[static_cast<size_t>(rank)], at::kDouble)),
            "all-to-all");
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, UnevenRowsAreRefusedWhatDoesNotFit) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    const at::Tensor two = tensors::zeros({2});
    require_refused("all-gather: a tensor without dimensions has no rows",
                    [&] { uneven_all_gather(ranks, tensors::zeros({})); });
    require_refused("all-gather: rank 0 has [2, 3] of Float and rank 1 [2, 4] of Float", [&] {
      uneven_all_gather(ranks, tensors::zeros({2, ranks.is_first() ? 3 : 4}));
    });
    require_refused("all-gather: rank 0 has [2] of Float and rank 1 [2] of Long",
                    [&] { uneven_all_gather(ranks, ranks.is_first() ? two : two.to(at::kLong)); });
    require_refused("all-to-all: the input has 2 rows, and its 2 parts for 2 ranks have 3", [&] {
      uneven_all_to_all(ranks, two, two, {1, 1}, {1, 2});
    });
    require_refused("all-to-all: the output has 2 rows, and its 1 parts for 2 ranks have 2", [&] {
      uneven_all_to_all(ranks, two, two, {2}, {1, 1});
    });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, SeveralAtOnce) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    const std::vector<at::Tensor> own{numbers(2, rank), numbers(3, 10 * rank)};
    const std::vector<at::Tensor> sums{own[0].clone(), own[1].clone()};
    all_reduce_coalesced(ranks, sums, Reduction::maximum);
    require(sums[0].equal(numbers(2, 1)) && sums[1].equal(numbers(3, 10)), "all-reduce");
    const std::vector<at::Tensor> all{tensors::empty({4}, at::kDouble),
                                      tensors::empty({2, 3}, at::kDouble)};
    all_gather_coalesced(ranks, all, own);
    require(all[0].equal(at::tensor({0.0, 1.0, 1.0, 2.0})), "all-gather");
    require(all[1][1].equal(numbers(3, 10)), "all-gather of the second");
    const std::vector<at::Tensor> parts{tensors::empty({2}, at::kDouble),
                                        tensors::empty({3}, at::kDouble)};
    reduce_scatter_coalesced(ranks, parts, all);
    require(parts[1].equal(numbers(3, 10 * rank).mul(2)), "reduce-scatter");

    require_refused(
        "all-reduce: the tensors of one operation have one dtype, and not Double and Long", [&] {
          all_reduce_coalesced(ranks, {own[0], own[1].to(at::kLong)});
        });
    require_refused("all-gather: tensor 1 has 6 elements for 2 ranks with 2 each", [&] {
      all_gather_coalesced(ranks, all, {own[0], own[0]});
    });
    require_refused("reduce-scatter: 2 tensors belong to 1",
                    [&] { reduce_scatter_coalesced(ranks, {own[0]}, all); });
    all_reduce_coalesced(ranks, {});
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, Transfers) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    const at::Tensor received = tensors::empty({2}, at::kDouble);
    auto pending =
        start_transfers(ranks, {{Transfer::Kind::receive, received, (rank + 2) % 3, 4},
                                {Transfer::Kind::send, numbers(2, rank), (rank + 1) % 3, 4}});
    for (Pending& each : pending) each.wait();
    require(received.equal(numbers(2, (rank + 2) % 3)), "in a ring");
    if (rank == 1) {
      std::vector<bool> heard(3);
      for (int i = 0; i < 2; ++i) {
        const int64_t source = receive_from_any(ranks, received, 6);
        require(received.equal(numbers(2, source)), "of whom it says");
        heard[static_cast<size_t>(source)] = true;
      }
      require(heard == std::vector<bool>{true, false, true}, "of both");
    } else {
      ranks.send(numbers(2, rank), 1, 6);
    }
    require_refused("transfer: there is no rank 3 among 3", [&] {
      start_transfers(ranks, {{Transfer::Kind::send, received, 3}});
    });
    require_refused("transfer: rank " + std::to_string(rank) + " is this rank itself", [&] {
      start_transfers(ranks, {{Transfer::Kind::send, received, rank}});
    });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, ABackendIsNotAskedForWhatItHasNot) {
  const auto outcome = in_ranks(2, [](World& world) {
    const at::Tensor values = tensors::zeros({2});
    require_refused("all-reduce: gloo has no premultiplied sum; multiply the tensor, and add up",
                    [&] { start_premultiplied_sum(world.ranks(), values, 0.5).wait(); });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, AMonitoredBarrierNamesWhoIsMissing) {
  const auto outcome = in_ranks(3, [](World& world) {
    monitored_barrier(world.ranks(), std::chrono::seconds(60));
    if (world.ranks().is_first()) {
      try {
        monitored_barrier(world.ranks(), std::chrono::milliseconds(200));
        throw std::logic_error("it did not fail");
      } catch (const CommunicationError& error) {
        const std::string text = error.what();
        require(text.starts_with("monitored barrier of 3 ranks failed in "), text);
        require(text.find("1, 2 failed to pass") != std::string::npos, text);
      }
      world.ranks().store().set("over", "");
    } else {
      world.ranks().store().get("over", std::chrono::seconds(60));
    }
    throw std::runtime_error("seen");  // its connections are closed
  });
  EXPECT_NE(outcome.message.find("seen"), std::string::npos) << outcome.message;
}

TEST(FurtherCollectives, Objects) {
  const auto outcome = in_ranks(3, [](World& world) {
    const Ranks& ranks = world.ranks();
    const int64_t rank = ranks.rank();
    const Json own = {{"rank", rank},
                      {"third", 1.0 / 3.0},
                      {"bytes", Json::binary(std::vector<uint8_t>(static_cast<size_t>(rank), 7))}};
    const auto all = all_gather_objects(ranks, own);
    require(all.size() == 3 && all[static_cast<size_t>(rank)] == own, "all_gather_objects");
    require(all[2]["bytes"].get_binary().size() == 2, "bytes");
    require(broadcast_object(ranks, own, 1) == all[1], "broadcast_object");
    const auto gathered = gather_objects(ranks, own, 2);
    require(gathered == (rank == 2 ? all : std::vector<Json>()), "gather_objects");
    require(scatter_object(ranks, gathered, 2) == own, "scatter_object");
    require_refused("scatter: rank 0 has 1 values for 3 ranks",
                    [&] { scatter_object(ranks, {own}, 0); });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(FurtherCollectives, AreTheIdentityInAWorldOfOne) {
  const Ranks alone;
  const at::Tensor own = numbers(2, 3);
  const at::Tensor output = tensors::zeros({2}, at::kDouble);
  const std::array<std::function<void()>, 5> operations{
      [&] { gather(alone, output, own, 0); }, [&] { scatter(alone, output, own, 0); },
      [&] { uneven_all_to_all(alone, output, own, {2}, {2}); },
      [&] { all_gather_coalesced(alone, {output}, {own}); },
      [&] { reduce_scatter_coalesced(alone, {output}, {own}); }};
  for (const auto& operation : operations) {
    output.zero_();
    operation();
    EXPECT_TRUE(output.equal(own));
  }
  reduce(alone, output, 0);
  all_reduce_coalesced(alone, {output});
  monitored_barrier(alone, std::chrono::seconds(1));
  EXPECT_TRUE(output.equal(own));
  EXPECT_TRUE(uneven_all_gather(alone, own).front().equal(own));
  start_premultiplied_sum(alone, output, 0.5).wait();
  EXPECT_TRUE(output.equal(own.mul(0.5)));
  EXPECT_EQ(all_gather_objects(alone, Json(5)), std::vector<Json>{5});
  EXPECT_EQ(gather_objects(alone, Json("a")), std::vector<Json>{"a"});
  EXPECT_EQ(scatter_object(alone, {Json(4)}), 4);
  EXPECT_EQ(broadcast_object(alone, Json()), Json());
}

}  // namespace
}  // namespace phalanx
