// SPDX-License-Identifier: Apache-2.0
// Which devices the logits of a loss in chunks are padded on.

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/interfaces/chunked_token_loss.h"
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

}  // namespace
}  // namespace phalanx
