// SPDX-License-Identifier: Apache-2.0
// Which devices the logits of a loss are padded on.

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/interfaces/chunked_token_loss.h"
#include "models/interfaces/token_loss.h"
#include "tests/tensors.h"
#include "tests/test_device/test_device.h"

namespace phalanx {
namespace {

std::vector<std::string> called;

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
  called.emplace_back(function.name());
  return nullptr;
}

/// How often something is filled in a loss of three chunks.
int64_t fills_on(at::Device device, int64_t vocabulary) {
  constexpr int64_t kPlaces = 12;
  const at::Tensor states = tensors::ones({kPlaces, 8}).to(device);
  const at::Tensor head = tensors::ones({vocabulary, 8}).to(device);
  const at::Tensor targets = tensors::zeros({kPlaces}, at::kLong).to(device);
  called.clear();
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(note).scopes({at::RecordScope::FUNCTION}));
  chunked_token_loss(states, head, targets, /*chunk=*/4);
  at::removeCallback(handle);
  return std::ranges::count(called, "aten::fill_");
}

TEST(PaddedLogits, AreThoseOfDevicesThatLoadRowsAtOnce) {
  test_device::install();
  const int64_t unpadded = fills_on(at::kCPU, 101);
  EXPECT_EQ(fills_on(test_device::device(), 101), unpadded + 3) << "what lies behind a row";
  EXPECT_EQ(fills_on(test_device::device(), 104), unpadded) << "8 divides it";
}

TEST(PaddedLogits, OfAllPlacesAtOnceAreTheSame) {
  test_device::install();
  const at::Tensor states = tensors::randn({2, 6, 8});
  const at::Tensor head = tensors::randn({101, 8});
  const at::Tensor targets = tensors::zeros({2, 6}, at::kLong);
  const auto gradients_on = [&](at::Device device) {
    const HiddenStates hidden{.states = states.to(device).detach().requires_grad_(true),
                              .head = head.to(device).detach().requires_grad_(true)};
    const at::Tensor loss = token_loss(hidden, targets.to(device), 12, {.chunk = 0});
    loss.backward();
    return std::vector<at::Tensor>{loss.detach().to(at::kCPU), hidden.states.grad().to(at::kCPU),
                                   hidden.head.grad().to(at::kCPU)};
  };
  const auto expected = gradients_on(at::kCPU);
  called.clear();
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(note).scopes({at::RecordScope::FUNCTION}));
  const auto found = gradients_on(test_device::device());
  at::removeCallback(handle);
  EXPECT_EQ(std::ranges::count(called, "aten::constant_pad_nd"), 2) << "and its backward pass";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].sizes(), expected[i].sizes());
    EXPECT_LT(found[i].sub(expected[i]).abs().max().item<double>(), 1e-6);
  }
}

}  // namespace
}  // namespace phalanx
