// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/gathered_loss.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>
#include <stdexcept>

namespace phalanx {
namespace {

struct Part : Batch {
  std::vector<at::Tensor*> tensors() override { return {}; }
};

std::vector<std::unique_ptr<Batch>> parts_with(const std::vector<int64_t>& tokens) {
  std::vector<std::unique_ptr<Batch>> parts;
  for (const int64_t each : tokens) {
    parts.push_back(std::make_unique<Part>());
    parts.back()->tokens = each;
  }
  return parts;
}

std::vector<std::optional<Loss>> losses(const std::vector<double>& values) {
  std::vector<std::optional<Loss>> all;
  for (const double value : values) all.emplace_back(Loss(torch::tensor(value, torch::kDouble)));
  return all;
}

double value_of(const Loss& loss) { return loss.total().item<double>(); }

TEST(GatheredLoss, IsTheMeanOverAllTokens) {
  EXPECT_EQ(value_of(gathered(losses({1, 2}), parts_with({3, 1}), at::kCPU)), 1.25);
  EXPECT_EQ(value_of(gathered(losses({4, 0, 8}), parts_with({2, 0, 2}), at::kCPU)), 6);
  EXPECT_EQ(value_of(gathered(losses({0, 0}), parts_with({0, 0}), at::kCPU)), 0);
  EXPECT_EQ(value_of(gathered(losses({7}), parts_with({0}), at::kCPU)), 7);
}

// A mean over no tokens is NaN.
TEST(GatheredLoss, LeavesPartsWithoutTokensOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(value_of(gathered(losses({4, nan, 8}), parts_with({2, 0, 2}), at::kCPU)), 6);
  EXPECT_EQ(value_of(gathered(losses({nan, 8}), parts_with({0, 2}), at::kCPU)), 8);
}

TEST(GatheredLoss, KeepsTheGraphOfEachPart) {
  const at::Tensor a = torch::tensor(1.0, torch::kDouble).requires_grad_();
  const at::Tensor b = torch::tensor(2.0, torch::kDouble).requires_grad_();
  std::vector<std::optional<Loss>> all;
  all.emplace_back(Loss(Loss::Parts{{"square", a * a}, {"plain", a}}));
  all.emplace_back(Loss(Loss::Parts{{"square", b * b}, {"plain", b}}));
  const Loss loss = gathered(std::move(all), parts_with({1, 3}), at::kCPU);
  ASSERT_EQ(loss.parts().size(), 2);
  EXPECT_EQ(loss.parts()[0].first, "square");
  EXPECT_EQ(loss.parts()[0].second.item<double>(), 0.25 * 1 + 0.75 * 4);
  loss.total().backward();
  EXPECT_EQ(a.grad().item<double>(), 0.25 * (2 + 1));
  EXPECT_EQ(b.grad().item<double>(), 0.75 * (4 + 1));
}

TEST(GatheredLoss, FeedsTheMetricsOfPartsWithTokens) {
  auto all = losses({1, 2, 3});
  for (auto& loss : all) loss->metric("accuracy", value_of(*loss), /*weight=*/2);
  Loss loss = gathered(std::move(all), parts_with({1, 0, 1}), at::kCPU);
  ASSERT_EQ(loss.metrics().size(), 2);
  EXPECT_EQ(loss.metrics()[0].inputs.front().item<double>(), 1);
  EXPECT_EQ(loss.metrics()[1].inputs.front().item<double>(), 3);
}

TEST(GatheredLoss, IsWeighedInSinglePrecisionAtLeast) {
  std::vector<std::optional<Loss>> all;
  all.emplace_back(Loss(torch::tensor(1.0F).to(torch::kBFloat16)));
  all.emplace_back(Loss(torch::tensor(2.0F).to(torch::kBFloat16)));
  const Loss loss = gathered(std::move(all), parts_with({2, 1}), at::kCPU);
  EXPECT_EQ(loss.total().scalar_type(), torch::kFloat);
  EXPECT_NEAR(value_of(loss), 4.0 / 3, 1e-6);
}

TEST(GatheredLoss, RefusesLossesOfOtherParts) {
  std::vector<std::optional<Loss>> all = losses({1});
  all.emplace_back(Loss(Loss::Parts{{"other", torch::tensor(1.0)}}));
  EXPECT_THROW(gathered(std::move(all), parts_with({1, 1}), at::kCPU), std::logic_error);
}

}  // namespace
}  // namespace phalanx
