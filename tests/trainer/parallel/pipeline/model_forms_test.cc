// SPDX-License-Identifier: Apache-2.0
// What a model may do around its units, and what a pipeline refuses.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/api/unit.h"
#include "trainer/parallel/pipeline/pipeline.h"

namespace phalanx {
namespace {

/// A layer that adds to its input.
class LayerImpl : public torch::nn::Module, public Unit {
 public:
  LayerImpl() : weight_(register_parameter("weight", at::zeros({4, 4}))) {}
  at::Tensor forward(const at::Tensor& input) { return input + at::linear(input, weight_); }

 private:
  at::Tensor weight_;
};
UNIT(Layer);

/// Two layers, and what a model may do around them.
struct Net : torch::nn::Module {
  Net() : first(register_module("first", Layer())), second(register_module("second", Layer())) {}

  at::Tensor forward() { return between(first(at::zeros({2, 3, 4}))).mean(); }
  virtual at::Tensor between(const at::Tensor& hidden) { return second(hidden); }

  Layer first;
  Layer second;
};

struct WorksBetween final : Net {
  at::Tensor between(const at::Tensor& hidden) override { return second(hidden * 2); }
};

struct SkipsOne final : Net {
  at::Tensor between(const at::Tensor& hidden) override { return second(hidden) + hidden; }
};

/// A model that may count its passes.
struct Counts final : Net {
  Counts() : count(register_buffer("count", at::zeros({1}))) {}

  at::Tensor pass(bool counts) {
    const at::NoGradGuard no_grad;
    if (counts) count.add_(1);
    const at::AutoGradMode with_grad(true);
    return forward();
  }

  at::Tensor count;
};

TEST(ModelForms, RefusesBuffersThatChangeInAStep) {
  const auto outcome = in_ranks(2, [](World& world) {
    Counts net;
    Pipeline engine(net, world.ranks());
    const auto step = [&](bool counts) {
      engine.run([&] { return Loss(net.pass(counts)); }, true).total().backward();
    };
    step(false);
    net.count.fill_(7);  // as one who loads a checkpoint
    step(false);
    std::string told;
    try {
      step(true);
    } catch (const std::logic_error& error) {
      told = error.what();
    }
    require(told.starts_with("the buffer 'count' has changed in a step"), told);
    world.ranks().barrier();  // the other stage has come here, too
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ModelForms, RefusesAModelThatWorksBetweenItsUnits) {
  const auto outcome = in_ranks(2, [](World& world) {
    WorksBetween net;
    Pipeline engine(net, world.ranks());
    if (world.ranks().is_first()) return;
    try {
      engine.run([&] { return Loss(net.forward()); }, true);
    } catch (const std::logic_error& error) {
      require(std::string(error.what())
                  .ends_with("without work between them: train this model with name: supervised"),
              error.what());
      return;
    }
    throw std::runtime_error("it was not refused");
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ModelForms, GivesAModelOfAnotherFormALossThatIsNotFinite) {
  const auto outcome = in_ranks(2, [](World& world) {
    SkipsOne net;
    Pipeline engine(net, world.ranks());
    const at::NoGradGuard no_grad;
    const Loss loss = engine.run([&] { return Loss(net.forward()); }, true);
    require(std::isnan(loss.total().item<double>()), "NaN");
    engine.close();
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(ModelForms, RefusesMoreStagesThanUnits) {
  const auto outcome = in_ranks(3, [](World& world) {
    Net net;
    try {
      const Pipeline engine(net, world.ranks());
    } catch (const std::invalid_argument& error) {
      require(std::string(error.what()) == "3 stages of a model of 2 units", error.what());
      return;
    }
    throw std::runtime_error("it was not refused");
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
