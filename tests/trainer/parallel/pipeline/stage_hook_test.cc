// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/stage_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace phalanx::pipeline {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tensors = std::vector<at::Tensor>;

constexpr StagePass::Units kSecondOfThree{.first = 1, .end = 2, .of_model = 3};

/// A pass of the second of three stages, a unit each, that gets ones.
struct Second {
  Second()
      : pass(
            kSecondOfThree,
            [] {
              return at::ones({2, 3, 4});
            },
            [this](const at::Tensor& output) { sent = output; }) {
    pass.begin();
  }

  at::Tensor sent;
  StagePass pass;
};

at::Tensor hidden() { return at::full({2, 3, 4}, 5.0); }

const ModuleForward kDoubles = [](Tensors inputs) { return Tensors{inputs.front() * 2}; };

TEST(StagePass, PassesOverUnitsOfEarlierStagesAndSendsWhatItsOwnGive) {
  Second stage;
  const Tensors passed = stage.pass.around(0, {hidden()}, kDoubles);
  EXPECT_TRUE(passed.front().isnan().all().item<bool>()) << "nobody may compute with it";
  EXPECT_THROW(stage.pass.around(1, passed, kDoubles), StageIsOver);
  EXPECT_TRUE(stage.sent.equal(at::full({2, 3, 4}, 2.0)));
}

// A unit that needs as many rows of `mask` as of its first argument, and takes all of a table.
const ModuleForward kMasked = [](Tensors inputs) {
  if (inputs[1].size(0) != inputs[0].size(0)) throw std::invalid_argument("rows of the mask");
  if (inputs[2].size(0) != 2) throw std::invalid_argument("rows of the table");
  return Tensors{inputs[0]};
};

// The table has as many rows as the batch has samples, and means something else by them.
TEST(StagePass, CallsAUnitThatIsPassedOverWithRowsThatFitTogether) {
  Second stage;
  const at::Tensor mask = at::ones({2, 1, 3});
  const at::Tensor table = at::ones({2, 3, 4});
  const Tensors passed = stage.pass.around(0, {hidden(), mask, table}, kMasked);
  EXPECT_EQ(passed.front().sizes(), hidden().sizes());
}

TEST(StagePass, CallsAUnitThatIsPassedOverWithoutSamples) {
  Second stage;
  int64_t samples = -1;
  stage.pass.around(0, {hidden()}, [&](Tensors inputs) {
    samples = inputs.front().size(0);
    return inputs;
  });
  EXPECT_EQ(samples, 0) << "it costs nothing";
}

TEST(StagePass, TellsTheErrorOfAUnitThatIsPassedOver) {
  Second stage;
  EXPECT_THAT(
      [&] {
        stage.pass.around(0, {hidden()}, [](const Tensors&) -> Tensors {
          throw std::runtime_error("of its own");
        });
      },
      ThrowsMessage<std::runtime_error>("of its own"));
}

TEST(StagePass, RefusesModelsOfAnotherForm) {
  const auto refuses = [](const char* what, auto&& pass) {
    Second stage;
    EXPECT_THAT([&] { pass(stage.pass); }, ThrowsMessage<std::logic_error>(HasSubstr(what)));
  };
  refuses("in the order of their registration",
          [](StagePass& pass) { pass.around(1, {hidden()}, kDoubles); });
  refuses("[batch, place, width]", [](StagePass& pass) {
    pass.around(0, {at::ones({2, 3})}, kDoubles);
  });
  refuses("without work between them", [](StagePass& pass) {
    const Tensors passed = pass.around(0, {hidden()}, kDoubles);
    pass.around(1, {passed.front() * 2}, kDoubles);
  });
  refuses("one tensor of the shape of the first argument", [](StagePass& pass) {
    const Tensors passed = pass.around(0, {hidden()}, kDoubles);
    pass.around(1, passed, [](const Tensors& inputs) { return Tensors{inputs.front().sum()}; });
  });
}

TEST(StagePass, CallsUnitsAsTheyAreWithoutAPass) {
  Second stage;
  stage.pass.end();
  EXPECT_TRUE(stage.pass.around(2, {hidden()}, kDoubles).front().equal(hidden() * 2));
}

}  // namespace
}  // namespace phalanx::pipeline
