// SPDX-License-Identifier: Apache-2.0
// Collectives that ranks compare before they begin them (PHALANX_CHECK_COLLECTIVES).

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/user_error.h"
#include "trainer/parallel/rendezvous/checked_backend.h"
#include "trainer/ranks/collectives/coalesced.h"
#include "trainer/ranks/collectives/one_rank.h"
#include "trainer/ranks/collectives/uneven_all_gather.h"
#include "trainer/ranks/collectives/uneven_all_to_all.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

using ::testing::ThrowsMessage;

/// Has ranks that start from now on compare, or not.
class Checks {
 public:
  explicit Checks(const char* value) { ::setenv("PHALANX_CHECK_COLLECTIVES", value, 1); }
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;
  ~Checks() { ::unsetenv("PHALANX_CHECK_COLLECTIVES"); }
};

at::Tensor floats(int64_t count) { return tensors::zeros({count}); }
at::Tensor longs(int64_t count) { return tensors::zeros({count}, at::kLong); }

/// On both ranks the call is refused with a message that ends so; they go on together.
void require_refused(const Ranks& ranks, const std::string& end,
                     const std::function<void()>& call) {
  std::string message = "nothing was refused";
  try {
    call();
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  require(message.ends_with(end), message + " ends with: " + end);
  const at::Tensor one = at::full({1}, 1.0F);
  ranks.all_reduce(one);
  require(one.equal(at::tensor({2.0F})), "the group can still be used");
}

using Body = std::function<void(const Ranks& ranks, bool is_first)>;

RankOutcome of_two(const Body& body) {
  const Checks checks("1");
  return in_ranks(2, [&](World& world) { body(world.ranks(), world.ranks().is_first()); });
}

TEST(CheckedCollectives, NameDtypesAndShapes) {
  const auto outcome = of_two([](const Ranks& ranks, bool is_first) {
    // As many bytes on both ranks: without checks a sum of what these are not.
    require_refused(ranks,
                    "in starting: rank 0 calls all-reduce (sum) of [2] of Float, and rank 1 "
                    "all-reduce (sum) of [1] of Long",
                    [&] { ranks.all_reduce(is_first ? floats(2) : longs(1)); });
    require_refused(
        ranks,
        "rank 0 calls broadcast (from rank 1) of [3] of Float, and rank 1 broadcast (from rank 1) "
        "of [2] of Float",
        [&] { ranks.broadcast(floats(is_first ? 3 : 2), 1); });
    require_refused(
        ranks, "rank 0 calls all-gather of [2] of Float, and rank 1 all-gather of [2] of Long",
        [&] {
          ranks.all_gather(is_first ? floats(4) : longs(4), is_first ? floats(2) : longs(2));
        });
    require_refused(ranks, "all-to-all: rank 0 sends 2 rows to rank 1, which expects 3", [&] {
      ranks.reduce_scatter(floats(is_first ? 2 : 3), floats(is_first ? 4 : 6));
    });
    require_refused(
        ranks,
        "rank 0 calls all-to-all of rows [] of Float, and rank 1 all-to-all of rows [] of Long",
        [&] {
          ranks.all_to_all(is_first ? floats(2) : longs(2), is_first ? floats(2) : longs(2));
        });
    require_refused(ranks,
                    "rank 0 calls reduce (sum, to rank 0) of [1] of Float, and rank 1 reduce (sum, "
                    "to rank 0) of [2] of Float",
                    [&] { reduce(ranks, floats(is_first ? 1 : 2), 0); });
    require_refused(
        ranks,
        "rank 0 calls gather (to rank 0) of [2] of Float, and rank 1 gather (to rank 0) of [3] of "
        "Float",
        [&] { gather(ranks, is_first ? floats(4) : at::Tensor(), floats(is_first ? 2 : 3), 0); });
    require_refused(
        ranks,
        "rank 0 calls scatter (from rank 1) of [1] of Float, and rank 1 scatter (from rank 1) of "
        "[2] of Float",
        [&] { scatter(ranks, floats(is_first ? 1 : 2), is_first ? at::Tensor() : floats(4), 1); });
    require_refused(
        ranks,
        "rank 0 calls all-reduce (sum) of [2] of Float and [1] of Float, and rank 1 all-reduce "
        "(sum) of [1] of Float and [2] of Float",
        [&] {
          all_reduce_coalesced(ranks, {floats(is_first ? 2 : 1), floats(is_first ? 1 : 2)});
        });
    require_refused(
        ranks, "rank 0 calls all-gather of [2] of Float, and rank 1 all-gather of [1] of Float",
        [&] {
          const int64_t count = is_first ? 2 : 1;
          all_gather_coalesced(ranks, {floats(2 * count)}, {floats(count)});
        });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(CheckedCollectives, NameCallsThatDiffer) {
  const auto outcome = of_two([](const Ranks& ranks, bool is_first) {
    require_refused(
        ranks,
        "rank 0 calls all-reduce (sum) of [2] of Float, and rank 1 all-reduce "
        "(maximum) of [2] of Float",
        [&] { ranks.all_reduce(floats(2), is_first ? Reduction::sum : Reduction::maximum); });
    require_refused(ranks,
                    "rank 0 calls broadcast (from rank 0) of [2] of Float, and rank 1 broadcast "
                    "(from rank 1) of [2] of Float",
                    [&] { ranks.broadcast(floats(2), ranks.rank()); });
    require_refused(ranks, "rank 0 calls barrier, and rank 1 all-reduce (sum) of [2] of Float",
                    [&] {
                      if (is_first) {
                        ranks.barrier();
                      } else {
                        ranks.all_reduce(floats(2));
                      }
                    });
    require_refused(ranks, "all-to-all: rank 1 sends 2 rows to rank 0, which expects 1", [&] {
      const std::vector<int64_t> sent =
          is_first ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{2, 0};
      uneven_all_to_all(ranks, floats(2), floats(2), {1, 1}, sent);
    });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

// A group of some ranks compares among these.
TEST(CheckedCollectives, OfAGroup) {
  const Checks checks("1");
  const auto outcome = in_ranks(3, [](World& world) {
    const auto group = world.ranks().subgroup(std::array<int64_t, 2>{2, 0});
    if (!group) return;
    require_refused(*group,
                    "rank 0 calls all-reduce (sum) of [2] of Float, and rank 1 all-reduce (sum) of "
                    "[3] of Float",
                    [&] { group->all_reduce(floats(group->is_first() ? 2 : 3)); });
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

// Without elements every collective is over at once, on all ranks.
void use_empty(const Ranks& ranks) {
  const at::Tensor nothing = floats(0);
  const at::Tensor of_all = tensors::zeros({2, 0});
  ranks.all_reduce(nothing);
  ranks.broadcast(nothing, 1);
  ranks.all_gather(of_all, nothing);
  ranks.reduce_scatter(nothing, of_all);
  ranks.all_to_all(floats(0), nothing);
  reduce(ranks, nothing, 1);
  gather(ranks, ranks.is_first() ? of_all : at::Tensor(), nothing, 0);
  scatter(ranks, nothing, ranks.is_first() ? of_all : at::Tensor(), 0);
  all_reduce_coalesced(ranks, {nothing, floats(0)});
  all_gather_coalesced(ranks, {of_all}, {nothing});
  require(uneven_all_gather(ranks, nothing).size() == 2, "a part for each rank");
  uneven_all_to_all(ranks, floats(0), nothing, {0, 0}, {0, 0});
  if (ranks.is_first()) {
    ranks.send(nothing, 1);
  } else {
    ranks.receive(nothing, 0);
  }
  const at::Tensor one = at::full({1}, 1.0F);
  ranks.all_reduce(one);
  require(one.equal(at::tensor({2.0F})), "what comes next is right");
}

TEST(CheckedCollectives, OfEmptyTensors) {
  for (const char* value : {"0", "1"}) {
    const Checks checks(value);
    EXPECT_EQ(in_ranks(2, [](World& world) { use_empty(world.ranks()); }), RankOutcome{}) << value;
  }
}

TEST(CheckedCollectives, AreAskedForByAVariable) {
  EXPECT_FALSE(checks_collectives());
  {
    const Checks checks("1");
    EXPECT_TRUE(checks_collectives());
  }
  const Checks checks("yes");
  EXPECT_THAT([] { checks_collectives(); },
              ThrowsMessage<UserError>("PHALANX_CHECK_COLLECTIVES is 'yes', but must be 1 or 0"));
}

}  // namespace
}  // namespace phalanx
