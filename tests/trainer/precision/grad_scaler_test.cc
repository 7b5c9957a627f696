// SPDX-License-Identifier: Apache-2.0
#include "trainer/precision/grad_scaler.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/tensors.h"
#include "trainer/precision/autocast.h"

namespace phalanx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(GradScaler, MultipliesTheLossAndDividesGradients) {
  GradScaler scaler({.init_scale = 8});
  EXPECT_EQ(scaler.scale(tensors::full({}, 3.0)).item<float>(), 24);
  const at::Tensor gradient = tensors::full({3}, 16.0);
  EXPECT_TRUE(scaler.unscale({gradient}));
  EXPECT_TRUE(gradient.equal(tensors::full({3}, 2.0)));
  EXPECT_EQ(scaler.good_steps(), 1);
}

TEST(GradScaler, ScalesALossOfLowPrecisionWithoutOverflow) {
  const GradScaler scaler({.init_scale = 65536});
  const at::Tensor loss = tensors::full({}, 3.0, at::kHalf);
  EXPECT_EQ(scaler.scale(loss).item<double>(), 3 * 65536.0);
}

TEST(GradScaler, BacksOffWhereOneGradientOverflows) {
  GradScaler scaler({.init_scale = 8, .backoff_factor = 0.25});
  const at::Tensor good = tensors::ones({2});
  const at::Tensor bad = tensors::full({2}, kInfinity, at::TensorOptions(at::kDouble));
  EXPECT_FALSE(scaler.unscale({good, bad}));
  EXPECT_EQ(scaler.current_scale(), 2);
  EXPECT_FALSE(scaler.unscale({tensors::full({1}, std::numeric_limits<double>::quiet_NaN())}));
  EXPECT_EQ(scaler.current_scale(), 0.5);
}

TEST(GradScaler, GrowsAfterSoManyGoodSteps) {
  GradScaler scaler({.init_scale = 4, .growth_factor = 3, .growth_interval = 2});
  EXPECT_TRUE(scaler.unscale({tensors::ones({1})}));
  EXPECT_EQ(scaler.current_scale(), 4);
  EXPECT_TRUE(scaler.unscale({tensors::ones({1})}));
  EXPECT_EQ(scaler.current_scale(), 12);
  EXPECT_EQ(scaler.good_steps(), 0);
  EXPECT_FALSE(scaler.unscale({tensors::full({1}, kInfinity)}));
  EXPECT_EQ(scaler.current_scale(), 6);
}

TEST(GradScaler, DoesNotGrowToInfinity) {
  GradScaler scaler({.init_scale = 3e38, .growth_interval = 1});
  EXPECT_TRUE(scaler.unscale({tensors::ones({1})}));
  EXPECT_EQ(scaler.current_scale(), static_cast<double>(3e38F));
}

TEST(GradScaler, GoesOnWhereItWasLeft) {
  GradScaler scaler({.init_scale = 4, .growth_interval = 3});
  scaler.restore(128, 2);
  EXPECT_EQ(scaler.current_scale(), 128);
  EXPECT_TRUE(scaler.unscale({tensors::ones({1})}));
  EXPECT_EQ(scaler.current_scale(), 256);
}

// Where a device keeps the scale, it is bit for bit what the host would have made it.
TEST(GradScaler, ADeviceMovesTheScaleAsTheHostDoes) {
  const LossScaling scaling{
      .init_scale = 1e4, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 3};
  GradScaler here(scaling);
  GradScaler there(scaling);
  std::mt19937 random(7);
  for (int step = 0; step < 300; ++step) {
    const double value = random() % 4 == 0 ? kInfinity : 1.0 + step;
    const at::Tensor gradient = tensors::full({3}, value);
    const at::Tensor same = gradient.clone();
    const bool is_finite = here.unscale({gradient});
    EXPECT_EQ(there.unscale_there({same}, at::kCPU).item<float>(), is_finite ? 0 : 1);
    EXPECT_TRUE(!is_finite || same.equal(gradient));
    EXPECT_EQ(there.scale_there().item<float>(), here.current_scale());
    EXPECT_EQ(there.good_steps_there().item<int>(), here.good_steps());
    EXPECT_EQ(there.scale(tensors::ones({})).item<float>(), here.current_scale());
  }
  there.restore(128, 2);
  EXPECT_EQ(there.scale(tensors::ones({})).item<float>(), 128);
}

TEST(GradScaler, TakesEmptyPartsAndNone) {
  GradScaler scaler({.init_scale = 4});
  EXPECT_TRUE(scaler.unscale({}));
  EXPECT_TRUE(scaler.unscale({tensors::ones({0})}));
}

TEST(Autocast, ComputesInLowPrecisionForItsScopeOnly) {
  const at::Tensor input = tensors::ones({2, 3});
  const at::Tensor weight = tensors::ones({4, 3});
  {
    const Autocast autocast(AutocastTo{.dtype = at::kBFloat16});
    EXPECT_EQ(tensors::linear(input, weight).scalar_type(), at::kBFloat16);
    EXPECT_EQ(Autocast::current(at::kCPU)->dtype, at::kBFloat16);
    {
      const Autocast inner(AutocastTo{.dtype = at::kHalf});
      EXPECT_EQ(tensors::linear(input, weight).scalar_type(), at::kHalf);
    }
    EXPECT_EQ(tensors::linear(input, weight).scalar_type(), at::kBFloat16);
    const Autocast nothing(std::nullopt);
    EXPECT_EQ(tensors::linear(input, weight).scalar_type(), at::kBFloat16);
  }
  EXPECT_EQ(tensors::linear(input, weight).scalar_type(), at::kFloat);
  EXPECT_FALSE(Autocast::current(at::kCPU).has_value());
}

TEST(Autocast, ForgetsCastWeightsAtTheEndOfTheOutermostScope) {
  const at::Tensor input = tensors::ones({1, 1});
  const at::Tensor weight = tensors::ones({1, 1}).set_requires_grad(true);
  const auto product = [&] {
    const Autocast autocast(AutocastTo{.dtype = at::kBFloat16});
    return tensors::linear(input, weight).item<double>();
  };
  EXPECT_EQ(product(), 1);
  {
    const at::NoGradGuard no_grad;
    weight.fill_(2);
  }
  EXPECT_EQ(product(), 2);
}

}  // namespace
}  // namespace phalanx
