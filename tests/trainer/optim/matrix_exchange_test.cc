// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/matrix_exchange.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/ranks/collectives/ranks_group.h"

namespace phalanx {
namespace {

struct Shape {
  int64_t rows, columns;
};
const std::vector<Shape> kShapes{{5, 7}, {3, 3}, {1, 11}, {8, 2}, {4, 4}};

at::Tensor whole(std::size_t i) {
  const auto [rows, columns] = kShapes[i];
  return at::arange(rows * columns, at::kFloat).view({rows, columns}) +
         static_cast<double>(i) * 100;
}

/// Which elements of a matrix a rank holds.
using Cut = std::function<std::pair<int64_t, int64_t>(int64_t rank, int64_t elements)>;

NamedParameter part_of(const at::Tensor& all, const std::string& name, int64_t begin, int64_t end) {
  return {.name = name,
          .tensor = all.flatten().slice(0, begin, end).clone(),
          .shard = ShardRange{.shape = all.sizes().vec(), .begin = begin, .end = end}};
}

constexpr int64_t kNoLimit = 1 << 20;

// Each rank's parts come back as those of the computed whole, which one rank has computed alone.
void exchange(const Ranks& ranks, const Cut& cut, const std::vector<std::size_t>& positions,
              int64_t elements_at_a_time = kNoLimit) {
  std::vector<NamedParameter> parameters;
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    const at::Tensor all = whole(i);
    const auto [begin, end] = cut(ranks.rank(), all.numel());
    parameters.push_back(part_of(all, std::to_string(i), begin, end));
  }
  const MatrixExchange exchange(ranks, parameters, elements_at_a_time);
  std::vector<at::Tensor> parts;
  for (const std::size_t i : positions) parts.push_back(parameters[i].tensor.clone());
  const at::Tensor computed = at::zeros({static_cast<int64_t>(kShapes.size())}, at::kFloat);
  exchange.run(positions, parts, [&](std::size_t i, const at::Tensor& matrix) {
    require(matrix.equal(whole(i)), "the whole of " + std::to_string(i));
    computed[static_cast<int64_t>(i)] += 1;
    return matrix.t().contiguous().t() * 2 + 1;  // not contiguous, as what is made orthogonal
  });
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const NamedParameter& parameter = parameters[positions[k]];
    require(parts[k].equal(parameter.tensor * 2 + 1), "the part of " + parameter.name);
  }
  const double mine = computed.sum().item<double>();
  require(mine < static_cast<double>(positions.size()), "others compute too");
  ranks.all_reduce(computed);
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    const bool is_run = std::ranges::find(positions, i) != positions.end();
    require(computed[static_cast<int64_t>(i)].item<double>() == (is_run ? 1 : 0),
            "one rank computes " + std::to_string(i));
  }
}

// As flat shards cut: some ranks have nothing of a matrix.
std::pair<int64_t, int64_t> shard(int64_t rank, int64_t elements) {
  const int64_t size = std::max<int64_t>(elements / 2, 9);
  return {std::min(rank * size, elements),
          rank == 2 ? elements : std::min((rank + 1) * size, elements)};
}

std::pair<int64_t, int64_t> all(int64_t, int64_t elements) { return {0, elements}; }

// Two copies, each cut into two.
std::pair<int64_t, int64_t> hybrid(int64_t rank, int64_t elements) {
  return rank % 2 == 0 ? std::pair{int64_t{0}, elements / 3} : std::pair{elements / 3, elements};
}

TEST(MatrixExchange, GivesEachRankItsPartOfWhatOneRankComputes) {
  const auto outcome = in_ranks(3, [](World& world) {
    for (const auto& cut : {shard, all}) {
      exchange(world.ranks(), cut, {0, 1, 2, 3, 4});
      exchange(world.ranks(), cut, {1, 3, 4});  // the others have no gradient
    }
  });
  EXPECT_EQ(outcome.message, "");
}

// The matrices have 35, 9, 11, 16 and 16 elements: each owner has room for one, or for some.
TEST(MatrixExchange, GivesTheSameInSeveralRounds) {
  const auto outcome = in_ranks(3, [](World& world) {
    for (const auto& cut : {shard, all}) {
      for (const int64_t elements : {1, 20, 30}) {
        exchange(world.ranks(), cut, {0, 1, 2, 3, 4}, elements);
        exchange(world.ranks(), cut, {1, 3, 4}, elements);
      }
    }
  });
  EXPECT_EQ(outcome.message, "");
}

// Twelve matrices of 16 elements on three ranks, four for each. A round has two exchanges.
int64_t exchanges(const Ranks& ranks, const Cut& cut, int64_t elements_at_a_time) {
  const at::Tensor matrix = at::zeros({4, 4}, at::kFloat);
  const auto [begin, end] = cut(ranks.rank(), matrix.numel());
  std::vector<NamedParameter> parameters;
  std::vector<std::size_t> positions;
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < 12; ++i) {
    parameters.push_back(part_of(matrix, std::to_string(i), begin, end));
    positions.push_back(i);
    parts.push_back(parameters.back().tensor);
  }
  const MatrixExchange exchange(ranks, parameters, elements_at_a_time);
  const int64_t before = ranks.group().activity->operations();
  exchange.run(positions, parts, [](std::size_t, const at::Tensor& matrix) { return matrix; });
  return ranks.group().activity->operations() - before;
}

TEST(MatrixExchange, HasAllRanksComputeInEachRound) {
  const auto outcome = in_ranks(3, [](World& world) {
    const auto require_rounds = [&](const Cut& cut, int64_t elements_at_a_time, int64_t expected) {
      const int64_t found = exchanges(world.ranks(), cut, elements_at_a_time);
      require(found == 2 * expected, std::to_string(expected) + " rounds of two exchanges, not " +
                                         std::to_string(found) + " exchanges");
    };
    require_rounds(shard, 1, 4);  // one matrix of each owner
    require_rounds(shard, 31, 4);
    require_rounds(shard, 32, 2);
    require_rounds(shard, 64, 1);
    // Whoever computes sends the whole to each of three.
    require_rounds(all, 2 * 3 * 16 - 1, 4);
    require_rounds(all, 2 * 3 * 16, 2);
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(MatrixExchange, ViewsTheFlatShardOfOneRankAsAMatrix) {
  const at::Tensor all = whole(0);
  const std::vector<NamedParameter> parameters{part_of(all, "flat", 0, all.numel())};
  std::vector<at::Tensor> parts{parameters[0].tensor.clone()};
  MatrixExchange({}, parameters).run({0}, parts, [&](std::size_t, const at::Tensor& matrix) {
    EXPECT_TRUE(matrix.equal(all));
    return matrix.t().contiguous().t() * 2;
  });
  EXPECT_TRUE(parts[0].equal(all.flatten() * 2));
}

TEST(MatrixExchange, RefusesAPartWithoutTheOtherRanks) {
  const std::vector<NamedParameter> parameters{part_of(whole(0), "h.0.up", 0, 20)};
  try {
    const MatrixExchange exchange({}, parameters);
    FAIL() << "it is refused";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(),
                 "this rank holds a part of the matrix 'h.0.up', and the optimizer needs all of "
                 "it: call Optimizer::join with the ranks that hold the others, before bind");
  }
}

TEST(MatrixExchange, TakesOneOfSeveralCopies) {
  const auto outcome = in_ranks(4, [](World& world) {
    exchange(world.ranks(), hybrid, {0, 1, 2, 3, 4});
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(MatrixExchange, RefusesPartsThatMakeNoMatrix) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Cut gap = [](int64_t rank, int64_t elements) {
      return std::pair{rank * (elements - 1), rank * (elements - 1) + 1};
    };
    try {
      exchange(world.ranks(), gap, {0});
    } catch (const std::logic_error& error) {
      require(std::string(error.what()) == "the ranks' parts do not make up a matrix",
              error.what());
      return;
    }
    require(false, "it is refused");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
