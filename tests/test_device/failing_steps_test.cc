// SPDX-License-Identifier: Apache-2.0
// Steps that fail on a device, which the host learns of late or from a device that answers nothing
// any more, name their input too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/test_device/failure.h"
#include "tests/test_device/test_device.h"
#include "tests/trainer/loop/flowers.h"
#include "tests/trainer/loop/spy.h"
#include "trainer/api/optimizer.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::test_device {
namespace {

using flowers::Flower;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Moves nothing.
class Still : public Optimizer {
 public:
  double base_lr() const override { return 1; }
  void bind(std::vector<ParameterGroup> /*groups*/) override {}
  void step(double /*lr*/) override {}
  std::vector<ShardedTensorView> state() override { return {}; }
};

// How a run on the device ends whose steps take four flowers each.
struct End {
  std::string message = "nothing";
  int64_t step = 0;
};

End end_of(const flowers::Parts& parts) {
  install();
  tiny::spy = {};
  TrainerSetup setup = flowers::setup_of(parts, {.max_steps = 4, .batch_size = 4});
  setup.components.optimizer = std::make_shared<Still>();
  setup.device = device();
  tiny::SpiedTrainer trainer(std::move(setup));
  End end;
  try {
    trainer.train();
  } catch (const std::exception& error) {
    end.message = error_text(error);
  }
  end.step = trainer.state().step;
  return end;
}

std::vector<Flower> seventh(const std::function<void(Flower& flower)>& change) {
  std::vector<Flower> flowers = flowers::eight_flowers();
  change(flowers[6]);
  return flowers;
}

TEST(FailingStepsOnTheDevice, ASampleThatIsNotFiniteIsFoundOneStepLater) {
  const End end = end_of(flowers::run_of(seventh([](Flower& f) { f.sizes[2] = flowers::kNan; })));
  EXPECT_THAT(end.message,
              HasSubstr("the loss is nan: 'flowers.csv', line 8: sizes[2] is nan. Repair"));
  EXPECT_EQ(end.step, 2);
}

TEST(FailingStepsOnTheDevice, AModuleWhoseResultIsNotFiniteIsFoundOneStepLater) {
  const End end = end_of(flowers::run_of(flowers::eight_flowers(), {.takes_logarithms = true}));
  EXPECT_THAT(
      end.message,
      AllOf(HasSubstr("the first value that is not finite is of log(float32 [4, 8]), behind "
                      "the module block.inner (Linear)"),
            HasSubstr("learning rate")));
  EXPECT_EQ(end.step, 1);
}

TEST(FailingStepsOnTheDevice, ALabelIsNamed) {
  const End end = end_of(flowers::run_of(seventh([](Flower& f) { f.kind = 3; })));
  EXPECT_THAT(end.message, HasSubstr("'flowers.csv', line 8: kinds is 3, but"));
}

// As CUDA after a kernel that met an index out of range.
TEST(FailingStepsOnTheDevice, ADeviceThatFailsLeavesTheSamplesToBeReadAgain) {
  const flowers::Parts parts = flowers::run_of(seventh([](Flower& f) { f.kind = 3; }));
  parts.task->before_each_loss = [&] {
    if (parts.task->losses == 2) fail();
  };
  EXPECT_THAT(end_of(parts).message,
              AllOf(HasSubstr(kFailure), HasSubstr("\n  step 2, forward"),
                    HasSubstr("kinds: int64 [4], from 1 to 3"),
                    HasSubstr("'flowers.csv', line 6: is the first of its samples")));
}

}  // namespace
}  // namespace phalanx::test_device
