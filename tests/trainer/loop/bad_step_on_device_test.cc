// SPDX-License-Identifier: Apache-2.0
// A step whose loss is not finite, on a device: the host learns of it a step later, and the weights
// are still those of before it.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/test_device/test_device.h"
#include "tests/trainer/loop/flowers.h"
#include "tests/trainer/loop/spy.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parameters.h"
#include "trainer/tensors/error_text.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

using flowers::Flower;

/// Follows the gradients.
class Descent : public Optimizer {
 public:
  double base_lr() const override { return 0.1; }
  void bind(std::vector<ParameterGroup> groups) override { groups_ = std::move(groups); }
  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (const ParameterGroup& group : groups_) {
      for (const NamedParameter& parameter : group.parameters) {
        if (parameter.tensor.grad().defined()) {
          parameter.tensor.add_(parameter.tensor.grad(), -lr);
        }
      }
    }
  }
  std::vector<ShardedTensorView> state() override { return {}; }

 private:
  std::vector<ParameterGroup> groups_;
};

struct Trained {
  std::string error = "none";
  std::vector<at::Tensor> weights;
};

/// On steps of four flowers each.
Trained train(const std::vector<Flower>& flowers, int64_t steps) {
  test_device::install();
  seed_everything(5);
  tiny::spy = {};
  const flowers::Parts parts = flowers::run_of(flowers);
  TrainerSetup setup = flowers::setup_of(parts, {.max_steps = steps, .batch_size = 4});
  setup.components.optimizer = std::make_shared<Descent>();
  setup.device = test_device::device();
  tiny::SpiedTrainer trainer(std::move(setup));
  Trained trained;
  try {
    trainer.train();
  } catch (const std::exception& error) {
    trained.error = error_text(error);
  }
  for (const NamedParameter& parameter : named_parameters(*parts.model)) {
    trained.weights.push_back(parameter.tensor.detach().to(at::kCPU));
  }
  return trained;
}

TEST(BadStepOnDevice, LeavesTheWeightsOfBeforeIt) {
  std::vector<Flower> flowers = flowers::eight_flowers();
  const Trained good = train(flowers, 1);
  const Trained longer = train(flowers, 2);
  flowers[6].sizes[2] = flowers::kNan;  // of the second step
  const Trained bad = train(flowers, 4);
  EXPECT_EQ(good.error, "none");
  EXPECT_THAT(bad.error, testing::HasSubstr("the loss is nan"));
  ASSERT_EQ(bad.weights.size(), good.weights.size());
  bool has_moved = false;
  for (size_t i = 0; i < good.weights.size(); ++i) {
    EXPECT_TRUE(bad.weights[i].equal(good.weights[i])) << i;
    has_moved = has_moved || !longer.weights[i].equal(good.weights[i]);
  }
  EXPECT_TRUE(has_moved) << "by a second step that is good";
}

}  // namespace
}  // namespace phalanx
