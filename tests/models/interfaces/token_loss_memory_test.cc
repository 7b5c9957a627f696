// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "models/interfaces/token_loss.h"
#include "tests/models/interfaces/tensor_bytes.h"
#include "tests/tensors.h"

namespace phalanx {
namespace {

constexpr int64_t kPlaces = 512;
constexpr int64_t kWidth = 16;
constexpr int64_t kVocabulary = 50257;
constexpr int64_t kLogitBytes = 4 * kVocabulary;  // The logits of one token, in float32.
constexpr int64_t kHeadBytes = 4 * kVocabulary * kWidth;
constexpr int64_t kStateBytes = 4 * kPlaces * kWidth;

// The most bytes in use during a forward and a backward pass.
int64_t most_bytes(int64_t chunk) {
  const HiddenStates hidden{.states = tensors::randn({2, kPlaces / 2, kWidth}).requires_grad_(true),
                            .head = tensors::randn({kVocabulary, kWidth}).requires_grad_(true)};
  const at::Tensor targets = tensors::empty({2, kPlaces / 2}, at::kLong).random_(0, kVocabulary);
  return most_tensor_bytes(
      [&] { token_loss(hidden, targets, kPlaces, {.chunk = chunk}).backward(); });
}

// Logits and log-probabilities of a chunk; beside them the gradients of head and states.
TEST(TokenLossMemory, HoldsTheLogitsOfOneChunk) {
  for (const int64_t chunk : {16, 64}) {
    EXPECT_LT(most_bytes(chunk), 2.05 * chunk * kLogitBytes + kHeadBytes + 3 * kStateBytes)
        << chunk;
  }
}

TEST(TokenLossMemory, WithoutChunksHoldsThoseOfAllPlacesThreeTimes) {
  EXPECT_GT(most_bytes(0), 3 * kPlaces * kLogitBytes);
}

}  // namespace
}  // namespace phalanx
