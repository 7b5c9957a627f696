// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/token_loss.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "models/interfaces/chunked_token_loss.h"
#include "tests/tensors.h"
#include "trainer/precision/autocast.h"

namespace phalanx {
namespace {

constexpr int64_t kPlaces = 21;
constexpr int64_t kWidth = 8;
constexpr int64_t kVocabulary = 101;

// States, head and targets of 3 samples of 7 places.
struct Case {
  explicit Case(at::ScalarType dtype = at::kFloat)
      : states(tensors::randn({3, 7, kWidth}).to(dtype).requires_grad_(true)),
        head(tensors::randn({kVocabulary, kWidth}).to(dtype).requires_grad_(true)),
        targets(tensors::empty({3, 7}, at::kLong).random_(0, kVocabulary)) {}

  void leave_out(int64_t places) {
    targets.flatten().narrow(0, 2, places).fill_(-100);
    tokens -= places;
  }
  at::Tensor loss(int64_t chunk) const {
    return token_loss({.states = states, .head = head}, targets, tokens, {.chunk = chunk});
  }

  at::Tensor states;
  at::Tensor head;
  at::Tensor targets;
  int64_t tokens = kPlaces;
};

struct Results {
  at::Tensor loss;
  at::Tensor of_states;
  at::Tensor of_head;
};

// Weighed as the trainer weighs a micro-batch.
Results results_of(const Case& c, int64_t chunk, double weight = 0.75,
                   std::optional<at::ScalarType> autocast_to = std::nullopt) {
  const at::Tensor loss = [&] {
    std::optional<AutocastTo> to;
    if (autocast_to) to = AutocastTo{.device = at::kCPU, .dtype = *autocast_to};
    const Autocast autocast(to);
    return c.loss(chunk);
  }();
  loss.mul(weight).backward();
  return {loss.detach(), std::exchange(c.states.mutable_grad(), at::Tensor()),
          std::exchange(c.head.mutable_grad(), at::Tensor())};
}

// ‖a − b‖∞ / ‖b‖∞.
double distance(const at::Tensor& a, const at::Tensor& b) {
  const auto largest = [](const at::Tensor& t) {
    return t.to(at::kDouble).abs().max().item<double>();
  };
  return largest(a.to(at::kDouble).sub(b.to(at::kDouble))) / largest(b);
}

void expect_near(const Results& found, const Results& expected, double limit) {
  EXPECT_EQ(found.loss.scalar_type(), expected.loss.scalar_type());
  EXPECT_EQ(found.of_states.scalar_type(), expected.of_states.scalar_type());
  EXPECT_EQ(found.of_head.scalar_type(), expected.of_head.scalar_type());
  EXPECT_LE(distance(found.loss, expected.loss), limit);
  EXPECT_LE(distance(found.of_states, expected.of_states), limit);
  EXPECT_LE(distance(found.of_head, expected.of_head), limit);
}

TEST(TokenLoss, InChunksIsThePlainOneWithinRounding) {
  for (const auto& [dtype, limit] : {std::pair(at::kFloat, 1e-6), {at::kDouble, 1e-14}}) {
    const Case c(dtype);
    const Results plain = results_of(c, 0);
    for (const int64_t chunk : {1, 4, 7, 20}) expect_near(results_of(c, chunk), plain, limit);
  }
}

TEST(TokenLoss, OfOneChunkHasThePlainOnesBits) {
  const Case c;
  const Results plain = results_of(c, 0);
  for (const int64_t chunk : {kPlaces, kPlaces + 1}) {
    const Results found = results_of(c, chunk);
    EXPECT_TRUE(found.loss.equal(plain.loss));
    EXPECT_TRUE(found.of_states.equal(plain.of_states));
    EXPECT_TRUE(found.of_head.equal(plain.of_head));
  }
}

TEST(TokenLoss, LeavesOutPlacesWithoutATarget) {
  Case c;
  c.leave_out(6);
  const Results plain = results_of(c, 0);
  for (const int64_t chunk : {1, 4, 16}) expect_near(results_of(c, chunk), plain, 1e-6);
}

TEST(TokenLoss, OfNoTargetIsZeroAndHasGradients) {
  Case c;
  c.targets.fill_(-100);
  c.tokens = 0;
  const Results found = results_of(c, 4);
  EXPECT_EQ(found.loss.item<float>(), 0);
  EXPECT_EQ(found.of_states.abs().max().item<float>(), 0);
  EXPECT_EQ(found.of_head.abs().max().item<float>(), 0);
}

TEST(TokenLoss, OfSixteenBitsIsFloat32) {
  for (const auto& [dtype, limit] : {std::pair(at::kBFloat16, 2e-2), {at::kHalf, 4e-3}}) {
    const Case c(dtype);
    const Results plain = results_of(c, 0);
    EXPECT_EQ(plain.loss.scalar_type(), at::kFloat);
    for (const int64_t chunk : {1, 4}) expect_near(results_of(c, chunk), plain, limit);
  }
}

// It is not known when the gradients are computed: they must not be below float16's numbers then.
TEST(TokenLoss, TakesALossScaleInFloat16) {
  const Case c(at::kHalf);
  expect_near(results_of(c, 4, 1024), results_of(c, 0, 1024), 4e-3);
}

TEST(TokenLoss, ComputesUnderAutocastAsThePlainOne) {
  const Case c;
  for (const auto& [dtype, limit] : {std::pair(at::kBFloat16, 2e-2), {at::kHalf, 4e-3}}) {
    const Results plain = results_of(c, 0, 1, dtype);
    const Results found = results_of(c, 4, 1, dtype);
    expect_near(found, plain, limit);
    EXPECT_GT(distance(found.of_head, results_of(c, 4, 1).of_head), 1e-5);  // it was not float32
  }
}

// Autocast keeps its casts of a parameter: one made here would have no gradient.
TEST(TokenLoss, LeavesAutocastsOwnCastsAlone) {
  const Autocast autocast(AutocastTo{.device = at::kCPU, .dtype = at::kBFloat16});
  const Case c;
  c.loss(4);
  EXPECT_TRUE(tensors::linear(c.states.detach(), c.head).requires_grad());
}

TEST(TokenLoss, ComputesOnlyTheGradientsThatAreWanted) {
  const Case c;
  const Results plain = results_of(c, 0);
  c.head.set_requires_grad(false);  // LoRA
  Results found = results_of(c, 4);
  EXPECT_FALSE(found.of_head.defined());
  EXPECT_LE(distance(found.of_states, plain.of_states), 1e-6);
  c.head.set_requires_grad(true);
  c.states.set_requires_grad(false);
  found = results_of(c, 4);
  EXPECT_FALSE(found.of_states.defined());
  EXPECT_LE(distance(found.of_head, plain.of_head), 1e-6);
  c.head.set_requires_grad(false);
  EXPECT_FALSE(c.loss(4).requires_grad());
}

TEST(TokenLoss, HasNoGraphWithoutGradients) {
  const Case c;
  const double plain = c.loss(0).item<double>();
  const at::NoGradGuard no_grad;
  const at::Tensor loss = c.loss(4);
  EXPECT_FALSE(loss.requires_grad());
  EXPECT_NEAR(loss.item<double>(), plain, 1e-5);
}

// A head that is also the embedding has two gradients, which autograd adds.
TEST(TokenLoss, AddsUpWithOtherUsesOfTheHead) {
  const Case c;
  const auto gradient = [&](int64_t chunk) {
    const at::Tensor states = c.head.narrow(0, 5, kPlaces).view({3, 7, kWidth});
    token_loss({.states = states, .head = c.head}, c.targets, c.tokens, {.chunk = chunk})
        .backward();
    return std::exchange(c.head.mutable_grad(), at::Tensor());
  };
  EXPECT_LE(distance(gradient(4), gradient(0)), 1e-6);
}

// The trainer seeds the backward pass of a loss that is not finite with NaN.
TEST(TokenLoss, HandsNaNOn) {
  const Case c;
  const Results found = results_of(c, 4, std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(found.of_states.isnan().all().item<bool>());
  EXPECT_TRUE(found.of_head.isnan().all().item<bool>());
}

TEST(TokenLoss, OfStatesThatAreNotFiniteIsNotEither) {
  const Case c;
  c.states.detach().flatten(0, 1).select(0, 9).fill_(std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(c.loss(4).item<double>()));
}

TEST(TokenLoss, WorksWhileAutogradLooksForAnomalies) {
  const Case c;
  const Results plain = results_of(c, 0);
  torch::autograd::AnomalyMode::set_enabled(true, /*check_nan=*/true);
  const Results found = results_of(c, 4);
  torch::autograd::AnomalyMode::set_enabled(false);
  expect_near(found, plain, 1e-6);
}

TEST(TokenLoss, HasOneBackwardPassInChunks) {
  const Case c;
  const at::Tensor loss = c.loss(4);
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.backward(), std::logic_error);
}

TEST(TokenLoss, HasNoSecondDerivativeInChunks) {
  const Case c;
  EXPECT_THROW(c.loss(4).backward({}, /*retain_graph=*/true, /*create_graph=*/true),
               std::logic_error);
}

// 2^26 logits are computed at once, whatever the places.
TEST(TokenLoss, KeepsThePlainOnesBitsInSmallBatches) {
  const Case c;
  const HiddenStates hidden{.states = c.states, .head = c.head};
  EXPECT_TRUE(token_loss(hidden, c.targets, c.tokens).equal(c.loss(0)));
}

TEST(TokenLoss, IsThatOfLogits) {
  Case c;
  c.leave_out(3);
  const at::Tensor logits = tensors::linear(c.states, c.head);
  EXPECT_TRUE(token_loss(logits, c.targets, c.tokens).equal(c.loss(0)));
}

// As on a GPU: rows of logits that are wider than the vocabulary.
TEST(TokenLoss, OfPaddedLogitsIsTheSame) {
  for (const auto& [dtype, limit] :
       {std::pair(at::kDouble, 1e-14), {at::kFloat, 1e-6}, {at::kBFloat16, 1e-2}}) {
    const Case c(dtype);
    const auto results = [&](int64_t columns) {
      const at::Tensor loss = chunked_token_loss(c.states.flatten(0, 1), c.head,
                                                 c.targets.flatten(), /*chunk=*/4, columns);
      loss.backward();
      return Results{loss.detach(), std::exchange(c.states.mutable_grad(), at::Tensor()),
                     std::exchange(c.head.mutable_grad(), at::Tensor())};
    };
    const Results plain = results(kVocabulary);
    for (const int64_t columns : {kVocabulary + 1, int64_t{128}}) {
      expect_near(results(columns), plain, limit);
    }
  }
}

TEST(TokenLoss, PadsLogitsWhereAGpuCouldNotLoadRowsAtOnce) {
  EXPECT_EQ(logit_columns(at::kCUDA, 50257), 50304);
  EXPECT_EQ(logit_columns(at::kCUDA, 50264), 50264) << "8 divides it";
  EXPECT_EQ(logit_columns(at::kCUDA, 32000), 32000);
  EXPECT_EQ(logit_columns(at::kCUDA, 1), 64);
  EXPECT_EQ(logit_columns(at::kCPU, 50257), 50257);
}

TEST(LossChunks, AreSmallOnTheCpu) {
  EXPECT_EQ(loss_chunks({}, at::kCPU, 16384, 50257), (LossChunks{.places = 1335}));
  EXPECT_EQ(loss_chunks({}, at::kCPU, 1335, 50257), LossChunks());
  EXPECT_EQ(loss_chunks({}, at::kCPU, 1 << 20, 1 << 20), (LossChunks{.places = 256}));
}

TEST(LossChunks, AreFewAndAlikeOnAGpu) {
  EXPECT_EQ(loss_chunks({}, at::kCUDA, 16384, 50257), (LossChunks{.places = 4096}));
  EXPECT_EQ(loss_chunks({}, at::kCUDA, 8192, 50257), (LossChunks{.places = 4096}));
  EXPECT_EQ(loss_chunks({}, at::kCUDA, 4096, 50257), (LossChunks{.places = 4096}))
      << "one, whose gradients need no logits kept";
  EXPECT_EQ(loss_chunks({}, at::kCUDA, 1335, 50257), LossChunks());
  for (const int64_t places : {1336, 5000, 5342, 10683, 20000, 123457}) {
    const int64_t chunk = loss_chunks({}, at::kCUDA, places, 50257).places.value();
    EXPECT_EQ(chunk % 128, 0) << places;
    EXPECT_LT(chunk * 50257, (int64_t{1} << 28) + 128 * 50257) << places;
    const int64_t chunks = (places + chunk - 1) / chunk;
    EXPECT_LT(chunks * chunk - places, 128 * chunks) << places << ": the last one is as large";
  }
}

TEST(LossChunks, AreTheConfigsWhereItNamesThem) {
  for (const at::DeviceType device : {at::kCPU, at::kCUDA}) {
    EXPECT_EQ(loss_chunks({.chunk = 0}, device, 1 << 20, 50257), LossChunks());
    EXPECT_EQ(loss_chunks({.chunk = 1000}, device, 16384, 50257), (LossChunks{.places = 1000}));
    EXPECT_EQ(loss_chunks({.chunk = 20000}, device, 16384, 50257), LossChunks());
  }
}

}  // namespace
}  // namespace phalanx
