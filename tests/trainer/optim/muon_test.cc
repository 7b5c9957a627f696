// SPDX-License-Identifier: Apache-2.0
// What muon_peer_test.py, which compares it with torch, cannot see.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/api/optimizer.h"

namespace phalanx {
namespace {

at::Tensor matrix() { return at::arange(12, at::kFloat).sin().view({4, 3}); }

// As FSDP's ranks hold a matrix.
NamedParameter flat_part(int64_t begin, int64_t end) {
  return {.name = "w",
          .tensor = matrix().flatten().slice(0, begin, end).clone().requires_grad_(),
          .shard = ShardRange{.shape = {4, 3}, .begin = begin, .end = end}};
}

at::Tensor moved(const NamedParameter& parameter) {
  const auto optimizer = make_registered<Optimizer>("muon");
  optimizer->bind({{.label = "all", .parameters = {parameter}}});
  parameter.tensor.mutable_grad() = parameter.tensor.detach().cos();
  optimizer->step(0.1);
  return parameter.tensor.detach();
}

TEST(Muon, MovesTheFlatShardOfOneRankAsTheMatrix) {
  const NamedParameter whole{.name = "w", .tensor = matrix().requires_grad_()};
  EXPECT_TRUE(moved(flat_part(0, 12)).equal(moved(whole).flatten()));
}

TEST(Muon, NeedsTheRanksThatHoldTheOtherParts) {
  try {
    moved(flat_part(0, 5));
    FAIL() << "it is refused";
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("call Optimizer::join"), std::string::npos);
  }
}

TEST(Muon, TellsTheStatesOfEachParameter) {
  const auto optimizer = make_registered<Optimizer>("muon");
  EXPECT_EQ(optimizer->states_of({.name = "w", .tensor = matrix()}), 1);
  EXPECT_EQ(optimizer->states_of(flat_part(0, 5)), 1);
  EXPECT_EQ(optimizer->states_of({.name = "bias", .tensor = matrix()[0]}), 2);
  EXPECT_EQ(optimizer->states_of({.name = "wte", .tensor = matrix(), .is_embedding_or_head = true}),
            2);
  EXPECT_EQ(make_registered<Optimizer>("muon", "{orthogonalize: false}")
                ->states_of({.name = "w", .tensor = matrix()}),
            2);
}

}  // namespace
}  // namespace phalanx
