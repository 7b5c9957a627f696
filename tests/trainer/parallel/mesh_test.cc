// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/mesh.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Mesh replicas_and_shards() { return Mesh({{"replicate", 2}, {"shard", 3}}); }

TEST(Mesh, CountsTheLastDimensionFirst) {
  const Mesh mesh = replicas_and_shards();
  EXPECT_EQ(mesh.world_size(), 6);
  EXPECT_EQ(mesh.size("shard"), 3);
  EXPECT_EQ(mesh.coordinate("replicate", 4), 1);
  EXPECT_EQ(mesh.coordinate("shard", 4), 1);
  EXPECT_THAT(mesh.ranks_along("shard", 4), ElementsAre(3, 4, 5));
  EXPECT_THAT(mesh.ranks_along("replicate", 4), ElementsAre(1, 4));
}

TEST(Mesh, RefusesWhatIsNone) {
  const auto made = [](std::vector<Mesh::Dimension> dimensions) {
    return [=] { Mesh mesh(dimensions); };
  };
  EXPECT_THAT(made({}), ThrowsMessage<std::invalid_argument>(HasSubstr("one dimension or more")));
  EXPECT_THAT(made({{"", 2}}), ThrowsMessage<std::invalid_argument>(HasSubstr("has a name")));
  EXPECT_THAT(made({{"data", 0}}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("'data' of a mesh has the size 0")));
  EXPECT_THAT(made({{"data", 2}, {"tensor", 2}, {"data", 2}}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("'data' of a mesh is given twice")));
}

TEST(Mesh, NamesItsDimensionsWhereOneIsUnknown) {
  const Mesh mesh = replicas_and_shards();
  const auto is_told = ThrowsMessage<std::invalid_argument>(
      HasSubstr("no dimension 'tensor'; it has: replicate, shard"));
  EXPECT_THAT([&] { mesh.size("tensor"); }, is_told);
  EXPECT_THAT([&] { mesh.coordinate("tensor", 0); }, is_told);
  EXPECT_THAT([&] { mesh.ranks_along("tensor", 0); }, is_told);
}

// Along each dimension the lines are disjoint and make up the world; a rank's line has it at its
// coordinate; and the coordinates of two ranks differ.
TEST(Mesh, DividesAnyWorldAlongEachDimension) {
  std::mt19937 generator(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Mesh::Dimension> dimensions;
    const int count = std::uniform_int_distribution(1, 4)(generator);
    for (int i = 0; i < count; ++i) {
      dimensions.push_back(
          {"d" + std::to_string(i), std::uniform_int_distribution(1, 4)(generator)});
    }
    const Mesh mesh(dimensions);
    std::set<std::vector<int64_t>> places;
    for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
      std::vector<int64_t> place;
      for (const auto& [name, size] : dimensions) {
        const auto line = mesh.ranks_along(name, rank);
        ASSERT_EQ(std::ssize(line), size);
        place.push_back(mesh.coordinate(name, rank));
        ASSERT_EQ(line[static_cast<size_t>(place.back())], rank);
        for (const int64_t other : line) ASSERT_EQ(mesh.ranks_along(name, other), line);
      }
      places.insert(std::move(place));
    }
    ASSERT_EQ(std::ssize(places), mesh.world_size());
  }
}

TEST(RanksAlong, SumWithinTheirLineAlone) {
  const RankOutcome outcome = in_ranks(6, [](World& world) {
    const Mesh mesh = replicas_and_shards();
    const int64_t rank = world.ranks().rank();
    for (const char* dimension : {"replicate", "shard"}) {
      const Ranks line = ranks_along(world.ranks(), mesh, dimension);
      require(line.world_size() == mesh.size(dimension), "the size of the line");
      require(line.rank() == mesh.coordinate(dimension, rank), "the rank in the line");
      at::Tensor sum = at::full({1}, rank, at::kLong);
      line.all_reduce(sum);
      int64_t expected = 0;
      for (const int64_t member : mesh.ranks_along(dimension, rank)) expected += member;
      require(sum.item<int64_t>() == expected, std::string("the sum along ") + dimension);
    }
  });
  EXPECT_EQ(outcome, RankOutcome());
}

TEST(RanksAlong, OfAWorldOfAnotherSizeAreRefused) {
  EXPECT_THAT([] { ranks_along(Ranks(), replicas_and_shards(), "shard"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("6 ranks does not fit a world of 1")));
}

TEST(World, IsAMeshOfDataAlone) {
  const RankOutcome outcome = in_ranks(2, [](World& world) {
    require(world.mesh().dimensions().size() == 1, "one dimension");
    require(world.mesh().size(Mesh::kData) == 2, "of all ranks");
    require(world.data_ranks().rank() == world.ranks().rank(), "this rank's place");
  });
  EXPECT_EQ(outcome, RankOutcome());
}

}  // namespace
}  // namespace phalanx
