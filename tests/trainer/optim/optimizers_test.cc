// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/registered.h"
#include "trainer/api/optimizer.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using Values = std::vector<double>;

at::Tensor parameter(const Values& values, at::ScalarType dtype = at::kDouble) {
  return at::tensor(values, dtype).requires_grad_();
}

/// Gradients that are the same on every run, and positive as well as negative.
Values gradient(int64_t step, size_t size) {
  std::mt19937 random(static_cast<unsigned>(step));
  std::uniform_real_distribution<double> uniform(-1, 1);
  Values values(size);
  for (auto& value : values) value = uniform(random);
  return values;
}

Values values_of(const at::Tensor& tensor) {
  const auto doubles = tensor.detach().to(at::kDouble);
  return {doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + doubles.numel()};
}

ParameterGroup group(std::vector<NamedParameter> parameters, bool weight_decay = true) {
  return {weight_decay ? "decay" : "no decay", weight_decay, std::move(parameters)};
}

/// One scalar weight under one rule, in a few lines of plain double arithmetic.
using Reference = std::function<double(double weight, double gradient, int64_t step)>;

void expect_follows(const std::string& name, const std::string& yaml, const Reference& reference,
                    bool weight_decay = true) {
  Values expected{0.5, -1.25, 2.0};
  const at::Tensor weight = parameter(expected);
  std::vector<Reference> rules(expected.size(), reference);  // A copy each: rules keep moments.
  const auto optimizer = make_registered<Optimizer>(name, yaml);
  optimizer->bind({group({{"w", weight}}, weight_decay)});
  for (int64_t step = 1; step <= 20; ++step) {
    const Values g = gradient(step, expected.size());
    weight.mutable_grad() = at::tensor(g, at::kDouble);
    optimizer->step(0.01);
    for (size_t i = 0; i < g.size(); ++i) expected[i] = rules[i](expected[i], g[i], step);
    EXPECT_THAT(values_of(weight), testing::Pointwise(testing::DoubleNear(1e-13), expected))
        << "at step " << step;
  }
}

Reference sgd(double momentum, double dampening, bool nesterov, double decay) {
  return [=, buffer = 0.0](double w, double g, int64_t step) mutable {
    g += decay * w;
    buffer = step == 1 ? g : momentum * buffer + (1 - dampening) * g;
    if (momentum == 0) return w - 0.01 * g;
    return w - 0.01 * (nesterov ? g + momentum * buffer : buffer);
  };
}

Reference adam(double coupled, double decoupled, bool amsgrad = false) {
  return [=, m = 0.0, v = 0.0, largest = 0.0](double w, double g, int64_t step) mutable {
    g += coupled * w;
    w -= 0.01 * decoupled * w;
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    largest = std::max(largest, v);
    const double mean = m / (1 - std::pow(0.9, step));
    const double square = (amsgrad ? largest : v) / (1 - std::pow(0.99, step));
    return w - 0.01 * mean / (std::sqrt(square) + 1e-8);
  };
}

TEST(Sgd, FollowsItsRule) {
  expect_follows("sgd", "{}", sgd(0, 0, false, 0));
  expect_follows("sgd", "{momentum: 0.9}", sgd(0.9, 0, false, 0));
  expect_follows("sgd", "{momentum: 0.9, dampening: 0.5}", sgd(0.9, 0.5, false, 0));
  expect_follows("sgd", "{momentum: 0.9, nesterov: true}", sgd(0.9, 0, true, 0));
  expect_follows("sgd", "{momentum: 0.9, weight_decay: 0.1}", sgd(0.9, 0, false, 0.1));
}

TEST(Sgd, RefusesNesterovWithoutMomentum) {
  EXPECT_THROW(make_registered<Optimizer>("sgd", "{nesterov: true}"), UserError);
}

TEST(Sgd, MomentumOfAParameterStartsWithItsOwnFirstGradient) {
  const at::Tensor early = parameter({1.0});
  const at::Tensor late = parameter({1.0});
  const auto optimizer = make_registered<Optimizer>("sgd", "{momentum: 0.9, dampening: 0.5}");
  optimizer->bind({group({{"early", early}, {"late", late}})});
  auto early_rule = sgd(0.9, 0.5, false, 0);
  auto late_rule = early_rule;
  double expected_early = 1;
  double expected_late = 1;
  for (int64_t step = 1; step <= 6; ++step) {
    early.mutable_grad() = at::tensor({0.5}, at::kDouble);
    if (step >= 3) late.mutable_grad() = at::tensor({0.5}, at::kDouble);
    optimizer->step(0.01);
    expected_early = early_rule(expected_early, 0.5, step);
    if (step >= 3) expected_late = late_rule(expected_late, 0.5, step - 2);
  }
  EXPECT_NEAR(early.item<double>(), expected_early, 1e-14);
  EXPECT_NEAR(late.item<double>(), expected_late, 1e-14);
}

TEST(Adam, FollowsItsRule) {
  expect_follows("adam", "{betas: [0.9, 0.99]}", adam(0, 0));
  expect_follows("adam", "{betas: [0.9, 0.99], weight_decay: 0.1}", adam(0.1, 0));
  expect_follows("adam", "{betas: [0.9, 0.99], amsgrad: true}", adam(0, 0, true));
}

TEST(AdamW, FollowsItsRule) {
  expect_follows("adamw", "{betas: [0.9, 0.99]}", adam(0, 0.01));
  expect_follows("adamw", "{betas: [0.9, 0.99], weight_decay: 0.1}", adam(0, 0.1));
}

TEST(AdamW, RefusesBetasOutOfRange) {
  EXPECT_THROW(make_registered<Optimizer>("adamw", "{betas: [0.9, 1.0]}"), UserError);
  EXPECT_THROW(make_registered<Optimizer>("adamw", "{betas: [0.9]}"), UserError);
  EXPECT_THROW(make_registered<Optimizer>("adamw", "{lr: -1}"), UserError);
}

Reference adagrad(double lr_decay, double initial, double decay) {
  return [=, sum = initial](double w, double g, int64_t step) mutable {
    g += decay * w;
    sum += g * g;
    const double rate = 0.01 / (1 + static_cast<double>(step - 1) * lr_decay);
    return w - rate * g / (std::sqrt(sum) + 1e-10);
  };
}

TEST(Adagrad, FollowsItsRule) {
  expect_follows("adagrad", "{}", adagrad(0, 0, 0));
  expect_follows("adagrad", "{lr_decay: 0.5}", adagrad(0.5, 0, 0));
  expect_follows("adagrad", "{initial_accumulator_value: 2}", adagrad(0, 2, 0));
  expect_follows("adagrad", "{weight_decay: 0.1}", adagrad(0, 0, 0.1));
}

Reference rmsprop(double momentum, bool centered, double decay) {
  return [=, square = 0.0, mean = 0.0, buffer = 0.0](double w, double g, int64_t) mutable {
    g += decay * w;
    square = 0.9 * square + 0.1 * g * g;
    mean = 0.9 * mean + 0.1 * g;
    buffer = momentum * buffer + g / (std::sqrt(square - (centered ? mean * mean : 0)) + 1e-8);
    return w - 0.01 * buffer;
  };
}

TEST(Rmsprop, FollowsItsRule) {
  expect_follows("rmsprop", "{alpha: 0.9}", rmsprop(0, false, 0));
  expect_follows("rmsprop", "{alpha: 0.9, momentum: 0.8}", rmsprop(0.8, false, 0));
  expect_follows("rmsprop", "{alpha: 0.9, centered: true}", rmsprop(0, true, 0));
  expect_follows("rmsprop", "{alpha: 0.9, weight_decay: 0.1}", rmsprop(0, false, 0.1));
}

TEST(Rmsprop, KeepsTheStatesThatItsConfigNeeds) {
  EXPECT_EQ(make_registered<Optimizer>("rmsprop")->states_per_element(), 1);
  EXPECT_EQ(make_registered<Optimizer>("rmsprop", "{centered: true, momentum: 0.5}")
                ->states_per_element(),
            3);
}

TEST(WeightDecay, OnlyActsOnGroupsThatDecay) {
  expect_follows("sgd", "{weight_decay: 0.5}", sgd(0, 0, false, 0), /*weight_decay=*/false);
  expect_follows("adamw", "{betas: [0.9, 0.99], weight_decay: 0.5}", adam(0, 0), false);
  expect_follows("adagrad", "{weight_decay: 0.5}", adagrad(0, 0, 0), false);
  expect_follows("rmsprop", "{alpha: 0.9, weight_decay: 0.5}", rmsprop(0, false, 0), false);
}

/// A variant of each registered optimizer that keeps all the state it can.
const std::map<std::string, std::string> kStateful = {
    {"adagrad", "{lr_decay: 0.1, weight_decay: 0.1}"},
    {"adam", "{amsgrad: true, weight_decay: 0.1}"},
    {"adamw", "{amsgrad: true}"},
    {"rmsprop", "{centered: true, momentum: 0.9, weight_decay: 0.1}"},
    {"sgd", "{momentum: 0.9, dampening: 0.5}"},
};

std::vector<std::string> optimizer_names() {
  return Registry<Optimizer>::instance().table().names();
}

std::string stateful(const std::string& name) {
  const auto found = kStateful.find(name);
  return found == kStateful.end() ? "{}" : found->second;
}

double rate(int64_t step) { return 0.1 / static_cast<double>(step); }

/// Two parameters in float and one in double under one optimizer.
struct Rig {
  explicit Rig(const std::string& name, const std::string& yaml)
      : optimizer(make_registered<Optimizer>(name, yaml)) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kFloat}) {
      weights.push_back(parameter({1.0, -2.0, 0.5, 0.25}, dtype));
    }
    optimizer->bind({group({{"a", weights[0]}, {"b", weights[1]}}),
                     group({{"c", weights[2]}}, /*weight_decay=*/false)});
  }

  void step(int64_t number) {
    set_gradients(number);
    optimizer->step(rate(number));
  }

  void set_gradients(int64_t number) {
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i].mutable_grad() =
          at::tensor(gradient(number * 10 + static_cast<int64_t>(i), 4), weights[i].scalar_type());
    }
  }

  std::shared_ptr<Optimizer> optimizer;
  std::vector<at::Tensor> weights;
};

class EveryOptimizer : public testing::TestWithParam<std::string> {};

TEST_P(EveryOptimizer, IsBuiltFromItsDefaultsAndTheirLrIsBaseLr) {
  EXPECT_GT(make_registered<Optimizer>(GetParam())->base_lr(), 0);
  EXPECT_EQ(make_registered<Optimizer>(GetParam(), "{lr: 0.125}")->base_lr(), 0.125);
}

TEST_P(EveryOptimizer, MovesEveryParameterAgainstItsGradient) {
  Rig rig(GetParam(), "{}");
  const auto before = values_of(rig.weights[0]);
  rig.step(1);
  const auto g = gradient(10, 4);
  for (size_t i = 0; i < g.size(); ++i) {
    EXPECT_LT((values_of(rig.weights[0])[i] - before[i]) * g[i], 0);
  }
}

TEST_P(EveryOptimizer, LeavesAParameterWithoutGradientAlone) {
  Rig rig(GetParam(), stateful(GetParam()));
  rig.step(1);
  const auto weight = rig.weights[1].detach().clone();
  std::map<std::string, at::Tensor> state;
  for (const auto& view : rig.optimizer->state()) state[view.name] = view.local.clone();
  rig.weights[1].mutable_grad().reset();
  rig.optimizer->step(0.1);
  EXPECT_TRUE(rig.weights[1].equal(weight));
  for (const auto& view : rig.optimizer->state()) {
    if (view.name.starts_with("b.")) {
      EXPECT_TRUE(view.local.equal(state.at(view.name))) << view.name;
    }
  }
  EXPECT_FALSE(rig.weights[0].equal(weight.to(at::kFloat)));
}

TEST_P(EveryOptimizer, StateIsCompleteFromBindOn) {
  Rig rig(GetParam(), stateful(GetParam()));
  const auto names = [&] {
    std::vector<std::string> names;
    for (const auto& view : rig.optimizer->state()) names.push_back(view.name);
    return names;
  };
  const auto before = names();
  rig.step(1);
  EXPECT_EQ(names(), before);
}

TEST_P(EveryOptimizer, GoesOnBitwiseFromARestoredState) {
  Rig whole(GetParam(), stateful(GetParam()));
  for (int64_t step = 1; step <= 5; ++step) whole.step(step);

  Rig resumed(GetParam(), stateful(GetParam()));
  for (size_t i = 0; i < whole.weights.size(); ++i) {
    resumed.weights[i].detach().copy_(whole.weights[i].detach());
  }
  const auto saved = whole.optimizer->state();
  const auto restored = resumed.optimizer->state();
  ASSERT_EQ(restored.size(), saved.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    EXPECT_EQ(restored[i].name, saved[i].name);
    restored[i].local.copy_(saved[i].local);
  }

  for (int64_t step = 6; step <= 10; ++step) {
    whole.step(step);
    resumed.step(step);
  }
  for (size_t i = 0; i < whole.weights.size(); ++i) {
    EXPECT_TRUE(resumed.weights[i].equal(whole.weights[i])) << "parameter " << i;
  }
}

// What a device that the host does not wait for does with steps whose gradients are not finite.
TEST_P(EveryOptimizer, ASkippedStepMovesAndCountsNothing) {
  Rig without(GetParam(), stateful(GetParam()));
  Rig with(GetParam(), stateful(GetParam()));
  for (int64_t step = 1; step <= 6; ++step) {
    without.step(step);
    for (const bool skips : {true, false}) {
      with.set_gradients(step);
      if (skips) {
        for (at::Tensor& weight : with.weights) weight.mutable_grad().fill_(std::nan(""));
      }
      with.optimizer->step_unless(at::tensor(skips ? 1.0F : 0.0F).squeeze(), rate(step));
    }
  }
  for (size_t i = 0; i < with.weights.size(); ++i) {
    EXPECT_TRUE(with.weights[i].equal(without.weights[i])) << "parameter " << i;
  }
  const auto expected = without.optimizer->state();
  const auto state = with.optimizer->state();
  for (size_t i = 0; i < state.size(); ++i) {
    // SGD's counter only tells whether a momentum has begun.
    if (GetParam() == "sgd" && state[i].name.ends_with(".step")) continue;
    EXPECT_TRUE(state[i].local.equal(expected[i].local)) << state[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryOptimizer, testing::ValuesIn(optimizer_names()),
                         [](const auto& info) { return info.param; });

at::Tensor in_bfloat16(const Values& values) {
  return at::tensor(values, at::kDouble).to(at::kBFloat16).view({8, -1});
}

/// Those whose kernels do not read `skip` themselves.
class UnfusedOptimizer : public testing::TestWithParam<std::string> {};

// Where a step may be skipped, the others are as everywhere: no number is rounded to bfloat16, in
// which a factor of 0.999 is 1.
TEST_P(UnfusedOptimizer, AStepThatMayBeSkippedRoundsAsOthersDo) {
  std::vector<at::Tensor> weights;
  std::vector<std::shared_ptr<Optimizer>> optimizers;
  // Not `centered`: the difference of two means in bfloat16 may be below 0, and has no root.
  const std::string yaml =
      GetParam() == "rmsprop" ? "{momentum: 0.9, weight_decay: 0.1}" : "{weight_decay: 0.1}";
  for (int i = 0; i < 2; ++i) {
    weights.push_back(in_bfloat16(gradient(99, 64)).requires_grad_());
    optimizers.push_back(make_registered<Optimizer>(GetParam(), yaml));
    optimizers.back()->bind({group({{"w", weights.back()}})});
  }
  for (int64_t step = 1; step <= 20; ++step) {
    for (const at::Tensor& weight : weights) {
      weight.mutable_grad() = in_bfloat16(gradient(step, 64));
    }
    optimizers[0]->step(rate(step));
    optimizers[1]->step_unless(at::tensor(0.0F).squeeze(), rate(step));
    ASSERT_TRUE(weights[0].equal(weights[1])) << "at step " << step;
  }
  const auto expected = optimizers[0]->state();
  const auto state = optimizers[1]->state();
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(state[i].local.equal(expected[i].local)) << state[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, UnfusedOptimizer,
                         testing::Values("adafactor", "lion", "muon", "rmsprop"),
                         [](const auto& info) { return info.param; });

/// Those that move each element by itself.
class ElementwiseOptimizer : public testing::TestWithParam<std::string> {};

// As FSDP's ranks hold a matrix: flat, cut anywhere, one of them with nothing of it.
TEST_P(ElementwiseOptimizer, MovesFlatShardsAsTheWhole) {
  const at::Tensor whole = at::tensor(gradient(99, 35), at::kDouble).view({7, 5}).requires_grad_();
  std::vector<at::Tensor> shards;
  for (const auto& [begin, count] : {std::pair(0, 13), {13, 0}, {13, 22}}) {
    shards.push_back(whole.detach().flatten().narrow(0, begin, count).clone().requires_grad_());
  }
  const auto of_whole = make_registered<Optimizer>(GetParam(), stateful(GetParam()));
  of_whole->bind({group({{"w", whole}})});
  std::vector<std::shared_ptr<Optimizer>> of_ranks;
  for (const at::Tensor& shard : shards) {
    of_ranks.push_back(make_registered<Optimizer>(GetParam(), stateful(GetParam())));
    of_ranks.back()->bind({group({{"w", shard}})});
  }
  for (int64_t step = 1; step <= 50; ++step) {
    const at::Tensor of_all = at::tensor(gradient(step, 35), at::kDouble);
    whole.mutable_grad() = of_all.view({7, 5});
    of_whole->step(rate(step));
    for (size_t rank = 0, begin = 0; rank < shards.size(); ++rank) {
      const int64_t count = shards[rank].numel();
      shards[rank].mutable_grad() = of_all.narrow(0, static_cast<int64_t>(begin), count).clone();
      of_ranks[rank]->step(rate(step));
      begin += static_cast<size_t>(count);
    }
  }
  Values joined;
  for (const at::Tensor& shard : shards) {
    const Values values = values_of(shard);
    joined.insert(joined.end(), values.begin(), values.end());
  }
  EXPECT_THAT(joined, testing::Pointwise(testing::DoubleNear(1e-13), values_of(whole)));
}

INSTANTIATE_TEST_SUITE_P(Registered, ElementwiseOptimizer,
                         testing::Values("adagrad", "adam", "adamw", "lion", "rmsprop", "sgd"),
                         [](const auto& info) { return info.param; });

TEST(Optimizers, AreAllRegistered) {
  EXPECT_THAT(optimizer_names(), testing::IsSupersetOf({"adafactor", "adagrad", "adam", "adamw",
                                                        "lion", "muon", "rmsprop", "sgd"}));
}

TEST(Optimizers, NameTheirState) {
  Rig adam("adamw", "{amsgrad: true}");
  std::vector<std::string> names;
  for (const auto& view : adam.optimizer->state()) names.push_back(view.name);
  EXPECT_THAT(names,
              testing::ElementsAre("a.exp_avg", "a.exp_avg_sq", "a.max_exp_avg_sq", "a.step",
                                   "b.exp_avg", "b.exp_avg_sq", "b.max_exp_avg_sq", "b.step",
                                   "c.exp_avg", "c.exp_avg_sq", "c.max_exp_avg_sq", "c.step"));
  EXPECT_TRUE(Rig("sgd", "{}").optimizer->state().empty());
}

}  // namespace
}  // namespace phalanx
