// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/activations/activation_checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "trainer/api/unit.h"
#include "trainer/base/user_error.h"
#include "trainer/precision/autocast.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

constexpr int64_t kWidth = 16;

class BlockImpl : public torch::nn::Module, public Unit {
 public:
  BlockImpl() {
    wide_ = register_module("wide", torch::nn::Linear(kWidth, 4 * kWidth));
    narrow_ = register_module("narrow", torch::nn::Linear(4 * kWidth, kWidth));
  }

  at::Tensor forward(const at::Tensor& input, const at::Tensor& scale = {}) {
    ++forwards;
    if (at_forward) at_forward();
    at::Tensor hidden = torch::gelu(torch::linear(input, wide_->weight, wide_->bias));
    hidden = torch::dropout(hidden, 0.25, is_training());
    if (scale.defined()) hidden = hidden * scale;
    if (changes && forwards > 1) hidden = torch::tanh(hidden);
    return input + torch::linear(hidden, narrow_->weight, narrow_->bias);
  }

  int forwards = 0;
  bool changes = false;
  std::function<void()> at_forward;

 private:
  torch::nn::Linear wide_{nullptr}, narrow_{nullptr};
};
UNIT(Block);

class PairImpl : public torch::nn::Module, public Unit {
 public:
  PairImpl() {
    first = register_module("first", Block());
    second = register_module("second", Block());
  }
  at::Tensor forward(const at::Tensor& input) { return torch::tanh(second(first(input))); }

  Block first{nullptr}, second{nullptr};
};
UNIT(Pair);

class Net : public torch::nn::Module {
 public:
  Net() {
    auto list = register_module("h", torch::nn::ModuleList());
    for (int i = 0; i < 4; ++i) {
      blocks.emplace_back();
      list->push_back(blocks.back());
    }
    pair = register_module("pair", Pair());
  }

  at::Tensor loss(const at::Tensor& input) {
    const at::Tensor scale = torch::sigmoid(input.sum());
    at::Tensor hidden = input;
    for (size_t i = 0; i < blocks.size(); ++i) {
      hidden = i == 1 ? blocks[i](hidden, scale) : blocks[i](hidden);
    }
    return pair(hidden).square().mean();
  }

  std::vector<Block> blocks;
  Pair pair{nullptr};
};

at::Tensor input(bool requires_grad = false) {
  return torch::sin(torch::arange(8 * kWidth).to(at::kFloat))
      .view({8, kWidth})
      .set_requires_grad(requires_grad);
}

std::shared_ptr<Net> make_net(const ActivationCheckpointing& checkpointing) {
  seed_everything(3);
  auto net = std::make_shared<Net>();
  checkpoint_activations(*net, checkpointing);
  seed_everything(5);
  return net;
}

/// Loss, gradients of the parameters and of the input, and the random numbers that follow.
std::vector<at::Tensor> train(const ActivationCheckpointing& checkpointing, bool input_grad,
                              std::optional<AutocastTo> to = std::nullopt) {
  const auto net = make_net(checkpointing);
  const at::Tensor in = input(input_grad);
  at::Tensor loss;
  {
    const Autocast autocast(to);
    loss = net->loss(in);
  }
  loss.backward();
  std::vector<at::Tensor> results{loss.detach()};
  for (const auto& parameter : net->parameters()) results.push_back(parameter.grad());
  if (input_grad) results.push_back(in.grad());
  results.push_back(torch::rand({2}));
  return results;
}

void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << "result " << i;
}

TEST(ActivationCheckpointing, ChangesNoBitWithDropout) {
  for (const bool input_grad : {false, true}) {
    const auto plain = train({}, input_grad);
    expect_equal(train({.policy = CheckpointedUnits::unit}, input_grad), plain);
    expect_equal(train({.policy = CheckpointedUnits::every_n, .n = 3}, input_grad), plain);
    expect_equal(
        train({.policy = CheckpointedUnits::by_name, .names = {"h.1", "Pair"}}, input_grad), plain);
  }
}

TEST(ActivationCheckpointing, ComputesAgainInTheSamePrecision) {
  const AutocastTo to{.dtype = at::kBFloat16};
  expect_equal(train({.policy = CheckpointedUnits::unit}, true, to), train({}, true, to));
}

TEST(ActivationCheckpointing, RunsEachChosenUnitOnceMoreAndPartsWithinItToo) {
  const auto net = make_net({.policy = CheckpointedUnits::unit});
  net->loss(input()).backward();
  for (const auto& block : net->blocks) EXPECT_EQ(block->forwards, 2);
  EXPECT_EQ(net->pair->first->forwards, 2) << "as a part of the unit around it, not for itself too";

  const auto some = make_net({.policy = CheckpointedUnits::every_n, .n = 2});
  some->loss(input()).backward();
  EXPECT_EQ(some->blocks[0]->forwards, 2);
  EXPECT_EQ(some->blocks[1]->forwards, 1);
}

TEST(ActivationCheckpointing, RunsNothingTwiceWithoutGradients) {
  const auto net = make_net({.policy = CheckpointedUnits::unit});
  const at::NoGradGuard no_grad;
  net->loss(input());
  EXPECT_EQ(net->blocks.front()->forwards, 1);
}

TEST(ActivationCheckpointing, TellsTheSecondForwardFromTheFirst) {
  const auto net = make_net({.policy = CheckpointedUnits::unit});
  std::vector<bool> seen;
  net->blocks[2]->at_forward = [&] { seen.push_back(is_recomputing()); };
  net->loss(input()).backward();
  EXPECT_EQ(seen, (std::vector<bool>{false, true}));
  EXPECT_FALSE(is_recomputing());
}

TEST(ActivationCheckpointing, ServesASecondBackwardOfTheSameGraph) {
  const auto gradients = [](const ActivationCheckpointing& checkpointing) {
    const auto net = make_net(checkpointing);
    const at::Tensor loss = net->loss(input());
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    std::vector<at::Tensor> sums;
    for (const auto& parameter : net->parameters()) sums.push_back(parameter.grad());
    return sums;
  };
  expect_equal(gradients({.policy = CheckpointedUnits::unit}), gradients({}));
}

TEST(ActivationCheckpointing, KeepsOnlyInputsUntilTheBackward) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc is none that mallinfo2 counts";
#endif
  constexpr int64_t kRows = 4096;
  const auto held = [](const ActivationCheckpointing& checkpointing) {
    const auto net = make_net(checkpointing);
    const at::Tensor in = torch::ones({kRows, kWidth});
    const auto before = mallinfo2();
    const at::Tensor loss = net->loss(in);
    const auto after = mallinfo2();
    return static_cast<double>(after.uordblks + after.hblkhd) -
           static_cast<double>(before.uordblks + before.hblkhd);
  };
  constexpr double kRowBytes = kRows * kWidth * sizeof(float);
  const double plain = held({});
  const double checkpointed = held({.policy = CheckpointedUnits::unit});
  EXPECT_GT(plain, 60 * kRowBytes) << "each block keeps several times 4 widths";
  EXPECT_LT(checkpointed, 9 * kRowBytes) << "the inputs of five units and the loss's own";
}

TEST(ActivationCheckpointing, RefusesAUnitThatDoesSomethingElseTheSecondTime) {
  const auto net = make_net({.policy = CheckpointedUnits::unit});
  net->blocks[1]->changes = true;
  const at::Tensor loss = net->loss(input());
  try {
    loss.backward();
    FAIL() << "not refused";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("unit h.1"));
    EXPECT_THAT(error.what(), HasSubstr("does not do the same each time"));
  }
  EXPECT_FALSE(is_recomputing());
  EXPECT_NO_THROW(make_net({})->loss(input()).backward()) << "the error leaves nothing behind";
}

TEST(ActivationCheckpointing, RefusesAnInputThatWasChangedSince) {
  const auto net = make_net({.policy = CheckpointedUnits::unit});
  at::Tensor in = input();
  const at::Tensor loss = net->loss(in);
  in.add_(1);
  try {
    loss.backward();
    FAIL() << "not refused";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("unit h.0"));
    EXPECT_THAT(error.what(), HasSubstr("changed in place"));
  }
}

TEST(ActivationCheckpointing, RefusesANameThatNoUnitHas) {
  Net net;
  try {
    checkpoint_activations(net, {.policy = CheckpointedUnits::by_name, .names = {"x.*"}});
    FAIL() << "not refused";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("activation_checkpointing.names"));
    EXPECT_THAT(error.what(), HasSubstr("'x.*'"));
    EXPECT_THAT(error.what(), HasSubstr("pair.second (Block)"));
  }
}

}  // namespace
}  // namespace phalanx
