// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/token_chooser.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace phalanx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor logits_of(const std::vector<double>& probabilities) {
  return at::tensor(probabilities, at::kDouble).log();
}

std::vector<double> values(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {whole.const_data_ptr<double>(), whole.const_data_ptr<double>() + whole.numel()};
}

GenerationConfig sampling() {
  GenerationConfig config;
  config.temperature = 1;
  return config;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

TEST(TokenChooser, TemperatureSharpens) {
  GenerationConfig config = sampling();
  config.temperature = 0.5;
  expect_near(values(probabilities_of(logits_of({0.2, 0.8}), config)), {0.04 / 0.68, 0.64 / 0.68});
}

TEST(TokenChooser, TopKKeepsTheLikeliest) {
  GenerationConfig config = sampling();
  config.top_k = 2;
  expect_near(values(probabilities_of(logits_of({0.1, 0.5, 0.3, 0.1}), config)),
              {0, 0.625, 0.375, 0});
  config.top_k = 100;
  expect_near(values(probabilities_of(logits_of({0.25, 0.75}), config)), {0.25, 0.75});
}

TEST(TokenChooser, TopPKeepsWhatReachesIt) {
  GenerationConfig config = sampling();
  config.top_p = 0.75;
  expect_near(values(probabilities_of(logits_of({0.1, 0.5, 0.3, 0.1}), config)),
              {0, 0.625, 0.375, 0});
  config.top_p = 1e-9;  // The likeliest stays.
  expect_near(values(probabilities_of(logits_of({0.1, 0.5, 0.4}), config)), {0, 1, 0});
}

TEST(TokenChooser, PenalizesWhatIsThere) {
  const at::Tensor logits = at::tensor({2.0, -1.0, 3.0}, at::kDouble);
  const std::vector<int32_t> text{1, 0, 0};
  expect_near(values(penalized(logits, text, 2)), {1, -2, 3});
  expect_near(values(logits), {2, -1, 3});
}

TEST(TokenChooser, TakesTheLikeliestWithoutADraw) {
  const at::Generator generator = at::detail::createCPUGenerator(0);
  const at::Tensor before = generator.get_state();
  EXPECT_EQ(choose_token(logits_of({0.1, 0.2, 0.7}), {}, GenerationConfig(), generator), 2);
  EXPECT_TRUE(generator.get_state().equal(before));
}

TEST(TokenChooser, RefusesWhatNoTokenCanBeChosenBy) {
  EXPECT_NO_THROW(require_finite(at::tensor({-kInfinity, 0.0}, at::kDouble)));
  for (const std::vector<double>& bad :
       {std::vector{std::nan(""), 0.0}, {kInfinity, 0.0}, {-kInfinity, -kInfinity}}) {
    EXPECT_THROW(require_finite(at::tensor(bad, at::kDouble)), NotFinite);
  }
}

// Pearson's chi-square of draws against the distribution they are of. The limit is that of 1e-9 for
// 15 degrees of freedom; the seed is fixed, so the test always does the same.
TEST(TokenChooser, DrawsTokensByTheirProbabilities) {
  constexpr double kLimit = 76.5;
  constexpr int kDraws = 20000;
  at::Tensor logits = at::arange(16, at::kDouble).mul(0.37).sin().mul(2);
  for (const double temperature : {0.5, 1.0, 2.0}) {
    GenerationConfig config = sampling();
    config.temperature = temperature;
    const std::vector<double> expected = values(probabilities_of(logits, config));
    const at::Generator generator = at::detail::createCPUGenerator(11);
    std::vector<int> counts(expected.size());
    for (int i = 0; i < kDraws; ++i) {
      ++counts[static_cast<size_t>(choose_token(logits, {}, config, generator))];
    }
    double chi_square = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double mean = expected[i] * kDraws;
      chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    EXPECT_LT(chi_square, kLimit) << "temperature " << temperature;
    EXPECT_GT(chi_square, 1) << "too even to be random";
  }
}

}  // namespace
}  // namespace phalanx
