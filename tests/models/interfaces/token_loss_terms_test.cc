// SPDX-License-Identifier: Apache-2.0
// Label smoothing and z-loss beside their definition, differentiated by autograd in float64.
#include "models/interfaces/token_loss_terms.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/chunked_token_loss.h"
#include "models/interfaces/token_loss.h"
#include "tests/tensors.h"
#include "trainer/precision/autocast.h"

namespace phalanx {
namespace {

constexpr int64_t kLeftOut = -100;

struct Case {
  explicit Case(int64_t vocabulary = 101)
      : states(tensors::randn({3, 7, 8}).to(at::kDouble).requires_grad_(true)),
        head(tensors::randn({vocabulary, 8}).to(at::kDouble).requires_grad_(true)),
        targets(tensors::empty({3, 7}, at::kLong).random_(0, vocabulary)) {}

  void leave_out(int64_t places) {
    targets.flatten().narrow(0, 2, places).fill_(kLeftOut);
    tokens -= places;
  }

  at::Tensor states;
  at::Tensor head;
  at::Tensor targets;
  int64_t tokens = 21;
};

/// The mean of each part over the places with a target.
NamedLosses definition(const Case& c, const TokenLossTerms& terms) {
  const at::Tensor logits = tensors::linear(c.states, c.head);
  const at::Tensor is_left_out = c.targets.eq(kLeftOut);
  const at::Tensor logarithms = logits.log_softmax(-1);
  const at::Tensor wanted = c.targets.masked_fill(is_left_out, 0).unsqueeze(-1);
  const auto mean = [&](const at::Tensor& of_places) {
    return of_places.masked_fill(is_left_out, 0).sum().div(static_cast<double>(c.tokens));
  };
  const at::Tensor entropy = logarithms.gather(-1, wanted).squeeze(-1).neg();
  NamedLosses parts{{"cross_entropy", mean(entropy)}};
  if (terms.label_smoothing > 0) {
    const at::Tensor uniform = logarithms.mean(-1).neg();
    parts.emplace_back("label_smoothing", mean(uniform.sub(entropy)).mul(terms.label_smoothing));
  }
  if (terms.z_loss > 0) {
    parts.emplace_back("z_loss", mean(logits.logsumexp(-1).square()).mul(terms.z_loss));
  }
  return parts;
}

at::Tensor sum_of(const NamedLosses& parts) {
  at::Tensor sum = parts.front().second;
  for (size_t i = 1; i < parts.size(); ++i) sum = sum.add(parts[i].second);
  return sum;
}

std::pair<at::Tensor, at::Tensor> gradients_of(const at::Tensor& loss, const Case& c) {
  loss.mul(0.75).backward();
  return {std::exchange(c.states.mutable_grad(), at::Tensor()),
          std::exchange(c.head.mutable_grad(), at::Tensor())};
}

// ‖a − b‖∞ / ‖b‖∞.
double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>() / b.abs().max().item<double>();
}

void expect_as_defined(const NamedLosses& found, const Case& c, const TokenLossTerms& terms) {
  const NamedLosses expected = definition(c, terms);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first);
    EXPECT_NEAR(found[i].second.item<double>(), expected[i].second.item<double>(), 1e-12);
  }
  const auto [of_states, of_head] = gradients_of(sum_of(found), c);
  const auto [states_expected, head_expected] = gradients_of(sum_of(expected), c);
  EXPECT_LE(distance(of_states, states_expected), 1e-12);
  EXPECT_LE(distance(of_head, head_expected), 1e-12);
}

const std::vector<TokenLossTerms> kTerms = {{.label_smoothing = 0.1, .z_loss = 0},
                                            {.label_smoothing = 0, .z_loss = 1e-3},
                                            {.label_smoothing = 0.2, .z_loss = 0.5},
                                            {.label_smoothing = 1, .z_loss = 0}};

TokenLossConfig config_of(const TokenLossTerms& terms, std::optional<int64_t> chunk) {
  return {.chunk = chunk, .label_smoothing = terms.label_smoothing, .z_loss = terms.z_loss};
}

TEST(TokenLossTerms, AreWhatTheyAreDefinedAs) {
  for (const int64_t left_out : {0, 6}) {
    Case c;
    c.leave_out(left_out);
    for (const TokenLossTerms& terms : kTerms) {
      for (const int64_t chunk : {0, 1, 4, 20}) {
        SCOPED_TRACE(testing::Message() << terms.label_smoothing << " " << terms.z_loss << " in "
                                        << chunk << ", without " << left_out);
        const HiddenStates hidden{.states = c.states, .head = c.head};
        expect_as_defined(token_losses(hidden, c.targets, c.tokens, config_of(terms, chunk)), c,
                          terms);
      }
      const at::Tensor logits = tensors::linear(c.states, c.head);
      expect_as_defined(token_losses(logits, c.targets, c.tokens, config_of(terms, {})), c, terms);
    }
  }
}

// As on a GPU: rows of logits that are wider than the vocabulary.
TEST(TokenLossTerms, SmoothLabelsAsTorchDoes) {
  Case c;
  c.leave_out(6);
  for (const double smoothing : {0.1, 0.5, 1.0}) {
    const at::Tensor logits = tensors::linear(c.states, c.head);
    const double expected =
        at::cross_entropy_loss(logits.flatten(0, 1), c.targets.flatten(), /*weight=*/{},
                               at::Reduction::Mean, kLeftOut, smoothing)
            .item<double>();
    for (const int64_t chunk : {0, 4}) {
      const NamedLosses found =
          token_losses(HiddenStates{.states = c.states, .head = c.head}, c.targets, c.tokens,
                       config_of({.label_smoothing = smoothing, .z_loss = 0}, chunk));
      EXPECT_NEAR(sum_of(found).item<double>(), expected, 1e-12) << smoothing << " in " << chunk;
    }
  }
}

TEST(TokenLossTerms, DoNotSeeColumnsBeyondTheVocabulary) {
  const Case c;
  for (const TokenLossTerms& terms : kTerms) {
    const TokenLossParts parts =
        chunked_token_loss(c.states.flatten(0, 1), c.head, c.targets.flatten(), 4, 128, terms);
    const at::Tensor expected = sum_of(definition(c, terms));
    EXPECT_NEAR(parts.total.item<double>(), expected.item<double>(), 1e-12);
    const auto [of_states, of_head] = gradients_of(parts.total, c);
    const auto [states_expected, head_expected] = gradients_of(expected, c);
    EXPECT_LE(distance(of_states, states_expected), 1e-12);
    EXPECT_LE(distance(of_head, head_expected), 1e-12);
  }
}

TEST(TokenLossTerms, AreNamedWhereThereAreAny) {
  const Case c;
  const HiddenStates hidden{.states = c.states, .head = c.head};
  const auto names = [&](const TokenLossTerms& terms) {
    std::vector<std::string> names;
    for (const auto& [name, value] :
         token_losses(hidden, c.targets, c.tokens, config_of(terms, 4))) {
      names.push_back(name);
    }
    return names;
  };
  EXPECT_THAT(names({}), testing::ElementsAre("loss"));
  EXPECT_THAT(names({.z_loss = 1e-4}), testing::ElementsAre("cross_entropy", "z_loss"));
  EXPECT_THAT(names({.label_smoothing = 0.1, .z_loss = 1e-4}),
              testing::ElementsAre("cross_entropy", "label_smoothing", "z_loss"));
}

TEST(TokenLossTerms, AreComputedWithoutGradientsToo) {
  const Case c;
  const HiddenStates hidden{.states = c.states, .head = c.head};
  for (const int64_t chunk : {0, 4}) {
    const TokenLossTerms terms{.label_smoothing = 0.2, .z_loss = 0.5};
    const NamedLosses expected = definition(c, terms);
    const at::NoGradGuard no_grad;
    const NamedLosses found = token_losses(hidden, c.targets, c.tokens, config_of(terms, chunk));
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].second.item<double>(), expected[i].second.item<double>(), 1e-12);
    }
  }
}

TEST(TokenLossTerms, OfNoTargetAreZeroAndHaveGradients) {
  Case c;
  c.targets.fill_(kLeftOut);
  const HiddenStates hidden{.states = c.states, .head = c.head};
  for (const int64_t chunk : {0, 4}) {
    const NamedLosses losses = token_losses(
        hidden, c.targets, 0, {.chunk = chunk, .label_smoothing = 0.1, .z_loss = 1e-3});
    for (const auto& [name, value] : losses) EXPECT_EQ(value.item<double>(), 0) << name;
    const auto [of_states, of_head] = gradients_of(sum_of(losses), c);
    EXPECT_EQ(of_states.abs().max().item<double>(), 0);
    EXPECT_EQ(of_head.abs().max().item<double>(), 0);
  }
}

/// By how much a z-loss of 1e-4 raises the sum of the head's gradient over all tokens but the
/// target: by 2 z log Z, of the probabilities.
struct Raise {
  double found;
  double expected;
};

Raise raise_of_z_loss(at::ScalarType dtype, bool is_autocast, int64_t chunk) {
  constexpr int64_t kVocabulary = 4096;
  constexpr double kZ = 1e-4;
  // Positive: what the places add up to has no differences of large numbers in it.
  const at::Tensor states = tensors::rand({1, 64, 16}).to(dtype);
  const at::Tensor head = tensors::randn({kVocabulary, 16}).mul(0.2).to(dtype);
  const at::Tensor targets = tensors::zeros({1, 64}, at::kLong);
  const auto sum = [&](double z_loss) {
    const HiddenStates hidden{.states = states, .head = head.detach().requires_grad_(true)};
    std::optional<AutocastTo> to;
    if (is_autocast) to = AutocastTo{.device = at::kCPU, .dtype = at::kBFloat16};
    const NamedLosses losses = [&] {
      const Autocast autocast(to);
      return token_losses(hidden, targets, 64, {.chunk = chunk, .z_loss = z_loss});
    }();
    sum_of(losses).backward();
    return hidden.head.grad().narrow(0, 1, kVocabulary - 1).to(at::kDouble).sum().item<double>();
  };
  const at::Tensor logits = tensors::linear(states.to(at::kDouble), head.to(at::kDouble));
  const double log_sum = logits.logsumexp(-1).mean().item<double>();
  return {sum(kZ) / sum(0) - 1, 2 * kZ * log_sum};
}

// 1 + 2 z log Z is 1.0017: of probabilities that are rounded to bfloat16 first, and again when they
// are multiplied by it, nothing would change.
TEST(TokenLossTerms, ASmallZLossIsNotLostInBfloat16) {
  for (const int64_t chunk : {0, 16}) {
    for (const bool is_autocast : {false, true}) {
      SCOPED_TRACE(testing::Message() << "in " << chunk << (is_autocast ? " by autocast" : ""));
      const auto [found, expected] =
          raise_of_z_loss(is_autocast ? at::kFloat : at::kBFloat16, is_autocast, chunk);
      EXPECT_NEAR(found, expected, 0.1 * expected);
    }
  }
}

}  // namespace
}  // namespace phalanx
