#include "trainer/checkpoint/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"

namespace phalanx {
namespace {

/// Elements [begin, end) of 0, 1, 2, … in a shape.
ShardedTensorView part(std::string name, std::vector<int64_t> shape, int64_t begin, int64_t end,
                       std::vector<int64_t> replicas) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .dtype = at::kFloat,
          .begin = begin,
          .end = end,
          .local = torch::arange(begin, end, torch::kFloat),
          .replicas = std::move(replicas)};
}

std::string failure(const std::function<void(const Ranks&)>& body) {
  return in_ranks(3, [&](World& world) { body(world.ranks()); }).message;
}

/// What rank 0 has at the end; the others have given theirs.
std::vector<ShardedTensorView> gather(const Ranks& ranks, std::vector<ShardedTensorView> views) {
  Gathering gathering(ranks, std::move(views));
  std::vector<ShardedTensorView> whole = gathering.views();
  for (auto& view : whole) view.local = gathering.fetch(view);
  gathering.finish();
  return whole;
}

TEST(Gathering, PutsPartsTogetherWhoeverHoldsThem) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              const int64_t rank = ranks.rank();
              const std::vector<int64_t> bounds{0, 4, 4, 10};  // rank 1 has nothing of it
              const bool is_first = rank == 0;
              const auto views = gather(
                  ranks, {part("cut", {2, 5}, bounds[rank], bounds[rank + 1], {rank}),
                          part("whole", {3}, 0, 3, {0, 1, 2}),
                          part("two hold the end", {2, 2}, is_first ? 0 : 1, is_first ? 1 : 4,
                               is_first ? std::vector<int64_t>{0} : std::vector<int64_t>{1, 2}),
                          part("none at first", {4}, is_first ? 0 : 2 * rank - 2,
                               is_first ? 0 : 2 * rank, {rank}),
                          part("scalar", {}, 0, 1, {0, 1, 2})});
              require(views.size() == (is_first ? 5 : 0), "rank 0 gets all, the others none");
              for (const auto& view : views) {
                const int64_t size = c10::multiply_integers(view.shape);
                require(view.begin == 0 && view.end == size, view.name + " is whole");
                require(view.local.view(-1).equal(torch::arange(size, torch::kFloat)), view.name);
              }
            }),
            "");
}

TEST(Gathering, RefusesPartsThatDoNotCoverTheWhole) {
  EXPECT_THAT(failure([](const Ranks& ranks) {
                const int64_t rank = ranks.rank();
                gather(ranks, {part("w", {9}, rank * 3, rank * 3 + 2, {rank})});
              }),
              ::testing::HasSubstr("the ranks hold 6 of the 9 elements of 'w'"));
}

TEST(Gathering, HasMemoryForNoneUntilItIsFetched) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              const int64_t rank = ranks.rank();
              const Gathering gathering(ranks, {part("cut", {6}, rank * 2, rank * 2 + 2, {rank}),
                                                part("whole", {3}, 0, 3, {0, 1, 2})});
              if (rank != 0) return;
              require(!gathering.views()[0].local.defined(), "parts of it lie elsewhere");
              require(gathering.views()[1].local.defined(), "rank 0 has it");
            }),
            "");
}

TEST(Gathering, LetsTheOthersGoOnWhereTheFirstStopsInTheMiddle) {
  EXPECT_EQ(failure([](const Ranks& ranks) {
              const int64_t rank = ranks.rank();
              const auto third = [&](const char* name) {
                return part(name, {3000}, rank * 1000, rank * 1000 + 1000, {rank});
              };
              Gathering gathering(ranks, {third("a"), third("b"), third("c")});
              if (rank == 0) gathering.fetch(gathering.views()[0]);
              gathering.finish();
              ranks.barrier();
            }),
            "");
}

}  // namespace
}  // namespace phalanx
