// SPDX-License-Identifier: Apache-2.0
// The loss of tokens beside the plain one in float64: on a GPU products are added up and widened by
// other means than on the CPU.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/token_loss.h"
#include "tests/tensors.h"
#include "trainer/cuda/load.h"
#include "trainer/host/gpus.h"
#include "trainer/precision/autocast.h"

namespace phalanx {
namespace {

constexpr int64_t kWidth = 128;
constexpr int64_t kVocabulary = 1003;  // 8 does not divide it

struct Case {
  at::ScalarType dtype;                    ///< The type of states and head.
  std::optional<at::ScalarType> autocast;  ///< What the product is computed in.
  double limit;                            ///< The largest relative distance.
};

struct Results {
  at::Tensor loss;
  at::Tensor of_states;
  at::Tensor of_head;
};

Results results_of(const at::Tensor& states, const at::Tensor& head, const at::Tensor& targets,
                   int64_t chunk) {
  const HiddenStates hidden{.states = states.detach().requires_grad_(true),
                            .head = head.detach().requires_grad_(true)};
  const at::Tensor loss = token_loss(hidden, targets, targets.numel() - 1, {.chunk = chunk});
  loss.backward();
  return {loss.detach(), hidden.states.grad(), hidden.head.grad()};
}

// ‖a − b‖ / ‖b‖.
double distance(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor difference = found.to(at::kCPU).to(at::kDouble).sub(expected);
  return difference.norm().div(expected.norm()).item<double>();
}

void expect_near(const Case& c, int64_t places, int64_t chunk, at::DeviceType device) {
  const at::Tensor states = tensors::randn({1, places, kWidth}).to(c.dtype);
  const at::Tensor head = tensors::randn({kVocabulary, kWidth}).mul(0.1).to(c.dtype);
  const at::Tensor targets = tensors::empty({1, places}, at::kLong).random_(0, kVocabulary);
  targets.select(1, 3).fill_(-100);
  const Results expected = results_of(states.to(at::kDouble), head.to(at::kDouble), targets, 0);
  std::optional<AutocastTo> to;
  if (c.autocast) to = AutocastTo{.device = device, .dtype = *c.autocast};
  const Autocast autocast(to);
  const Results found = results_of(states.to(device), head.to(device), targets.to(device), chunk);
  EXPECT_EQ(found.of_head.scalar_type(), c.dtype);
  EXPECT_EQ(found.of_states.scalar_type(), c.dtype);
  EXPECT_LE(distance(found.loss, expected.loss), c.limit);
  EXPECT_LE(distance(found.of_states, expected.of_states), c.limit);
  EXPECT_LE(distance(found.of_head, expected.of_head), c.limit);
}

void expect_near_in_each_dtype(at::DeviceType device, int64_t places) {
  const std::vector<std::pair<std::string, Case>> cases{
      {"float64", {at::kDouble, {}, 1e-12}},
      {"float32", {at::kFloat, {}, 1e-5}},
      {"bfloat16", {at::kBFloat16, {}, 1e-2}},
      {"float16", {at::kHalf, {}, 2e-3}},
      {"float32 by autocast to bfloat16", {at::kFloat, at::kBFloat16, 1e-2}},
      {"float32 by autocast to float16", {at::kFloat, at::kHalf, 2e-3}},
  };
  for (const auto& [name, c] : cases) {
    for (const int64_t chunk : {int64_t{0}, int64_t{128}, places}) {
      SCOPED_TRACE(name + " in chunks of " + std::to_string(chunk));
      expect_near(c, places, chunk, device);
    }
  }
}

class TokenLoss : public testing::Test {
 protected:
  // As a rank does, before anything asks LibTorch about CUDA: the first answer is for the process.
  static void SetUpTestSuite() { load_cuda(); }
};

TEST_F(TokenLoss, IsNearFloat64OnTheCpu) { expect_near_in_each_dtype(at::kCPU, 300); }

TEST_F(TokenLoss, IsNearFloat64OnAGpu) {
  if (usable_gpus() == 0) GTEST_SKIP() << "no NVIDIA GPU on this host: not tested";
  expect_near_in_each_dtype(at::kCUDA, 2000);
}

}  // namespace
}  // namespace phalanx
