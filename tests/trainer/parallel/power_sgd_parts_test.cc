// SPDX-License-Identifier: Apache-2.0
// PowerSGD's parts by themselves, and which fields it takes.

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/trainer/parallel/ddp_options_of.h"
#include "trainer/base/user_error.h"
#include "trainer/parallel/ddp/power_sgd/counts.h"
#include "trainer/parallel/ddp/power_sgd/orthogonalize.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& hook) {
  try {
    ddp_options_of("comm_hook: " + hook);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// The first of NumPy's RandomState(seed).randint(1_000_000_000).
TEST(PowerSgd, DrawsTheSeedsOfNumPy) {
  power_sgd::CountOptions options;
  power_sgd::Counts counts(options);
  const std::vector<int64_t> of_zero{counts.next_seed(), counts.next_seed(), counts.next_seed()};
  EXPECT_THAT(of_zero, ElementsAre(209652396, 398764591, 924231285));
  const std::string text = counts.json();
  const int64_t next = counts.next_seed();
  power_sgd::Counts resumed(options);
  resumed.restore(text);
  EXPECT_EQ(resumed.next_seed(), next);
  EXPECT_THROW(resumed.restore("{}"), UserError);
}

TEST(PowerSgd, OrthogonalizesEachMatrix) {
  for (const int64_t columns : {1, 2, 5}) {
    const at::Tensor matrices = at::randn({3, 9, columns}, at::kDouble);
    const at::Tensor first = matrices.select(2, 0).clone();
    power_sgd::orthogonalize(matrices, 0);
    const at::Tensor products = at::matmul(matrices.transpose(1, 2), matrices);
    EXPECT_LT((products - at::eye(columns, at::kDouble)).abs().max().item().toDouble(), 1e-12);
    const at::Tensor along = (matrices.select(2, 0) * first).sum(1).abs();
    EXPECT_LT((along - first.norm(2, 1)).abs().max().item().toDouble(), 1e-12);
  }
  const at::Tensor zeros = at::zeros({1, 4, 1}, at::kDouble);
  power_sgd::orthogonalize(zeros, 1e-8);
  EXPECT_EQ(zeros.abs().sum().item().toDouble(), 0);
}

TEST(PowerSgd, RefusesFieldsThatPythonRefuses) {
  EXPECT_THAT(refusal("{name: powerSGD, start_powerSGD_iter: 1}"), HasSubstr("must be above 1"));
  EXPECT_EQ(
      refusal(
          "{name: powerSGD, start_powerSGD_iter: 0, use_error_feedback: false, warm_start: false}"),
      "");
  EXPECT_THAT(refusal("{name: batched_powerSGD, start_powerSGD_iter: 1}"),
              HasSubstr("must be above 1"));
  EXPECT_THAT(refusal("{name: powerSGD, matrix_approximation_rank: 0}"),
              HasSubstr("matrix_approximation_rank"));
  EXPECT_THAT(refusal("{name: batched_powerSGD, min_compression_rate: 2}"),
              HasSubstr("min_compression_rate"));
}

}  // namespace
}  // namespace phalanx
