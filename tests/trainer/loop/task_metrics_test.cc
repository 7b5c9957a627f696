// SPDX-License-Identifier: Apache-2.0
// The metrics that a task declares: of each step by itself, and of whole validations.

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/tensors.h"
#include "tests/trainer/loop/measuring.h"
#include "tests/trainer/loop/own_step.h"
#include "tests/trainer/loop/spy.h"
#include "trainer/metrics/measures/means.h"

namespace phalanx::tiny {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

// By step.
std::vector<NamedValues> measured_in_steps(const std::shared_ptr<Measuring>& task,
                                           bool requests = true) {
  std::vector<NamedValues> measured;
  spy = {};
  if (requests) spy.at_step_start = [](TrainerBase& trainer) { trainer.request_metrics(); };
  spy.at_step_end = [&](TrainerBase& trainer) { measured.push_back(trainer.step_metrics()); };
  Parts parts{.task = task};
  const auto trainer =
      make_spied(parts, {.max_steps = 3, .batch_size = 2, .gradient_accumulation_steps = 2});
  trainer->train();
  return measured;
}

TEST(TaskMetrics, AreOfAllMicroBatchesOfTheirStepAlone) {
  // An epoch has ten samples, so the third step has two.
  EXPECT_THAT(measured_in_steps(std::make_shared<Measuring>()),
              ElementsAre(ElementsAre(Pair("seen", 4)), ElementsAre(Pair("seen", 4)),
                          ElementsAre(Pair("seen", 2))));
}

TEST(TaskMetrics, AreLeftOutOfAStepThatFedNone) {
  const auto task = std::make_shared<Measuring>();
  task->feeds = false;
  EXPECT_THAT(measured_in_steps(task), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(TaskMetrics, AreMeasuredOnlyInStepsThatSomebodyReads) {
  EXPECT_THAT(measured_in_steps(std::make_shared<Measuring>(), /*requests=*/false),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(TaskMetrics, AreNoPartsOfTheLoss) {
  Parts plain;
  Parts measuring{.task = std::make_shared<Measuring>()};
  for (const Parts* const parts : {&plain, &measuring}) {
    spy = {};
    make_spied(*parts, {.max_steps = 3, .batch_size = 2})->train();
  }
  EXPECT_EQ(weights_of(*measuring.model), weights_of(*plain.model));
}

/// Measures by the losses of passes of its own.
class OwnPasses : public Measuring {
 public:
  void training_step(TrainingStep& step, Regressor& model) override {
    for (const auto& batch : step.micro_batches()) {
      const auto& samples = static_cast<const Samples&>(*batch);
      const auto pass = [&] {
        return std::vector{compute_loss(model, samples, step.state()).total()};
      };
      Loss loss(step.run(pass).front());
      loss.metric("seen", MetricInputs{tensors::full({1}, static_cast<double>(batch->samples))});
      step.backward(loss, *batch);
    }
    step.update();
  }
};

TEST(TaskMetrics, AreFedByTheLossOfAPassOfTheTasksOwn) {
  EXPECT_THAT(measured_in_steps(std::make_shared<OwnPasses>()),
              ElementsAre(ElementsAre(Pair("seen", 4)), ElementsAre(Pair("seen", 4)),
                          ElementsAre(Pair("seen", 2))));
  EXPECT_THAT(measured_in_steps(std::make_shared<OwnPasses>(), /*requests=*/false),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

/// Measures by forward passes without gradients, beside passes of its own that feed nothing.
class LooksFirst : public Measuring {
 public:
  void training_step(TrainingStep& step, Regressor& model) override {
    for (const auto& batch : step.micro_batches()) {
      {
        const at::NoGradGuard no_grad;
        (void)step.forward(*batch);
      }
      const auto& samples = static_cast<const Samples&>(*batch);
      const auto pass = [&] {
        return std::vector{compute_loss(model, samples, step.state()).total()};
      };
      step.backward(step.run(pass).front(), {.weight = step.weight_of(*batch)});
    }
    step.update();
  }
};

TEST(TaskMetrics, AreFedByAForwardPassWithoutGradients) {
  EXPECT_THAT(measured_in_steps(std::make_shared<LooksFirst>()),
              ElementsAre(ElementsAre(Pair("seen", 4)), ElementsAre(Pair("seen", 4)),
                          ElementsAre(Pair("seen", 2))));
}

/// Measures what it has not declared.
class Undeclared : public OwnStep {
 public:
  Undeclared()
      : OwnStep([](OwnStep&, TrainingStep& step, Regressor&) {
          const auto& batch = *step.micro_batches().front();
          Loss loss = step.forward(batch);
          loss.metric("unknown", 1.0);
          step.backward(loss, batch);
          step.update();
        }) {}
};

TEST(TaskMetrics, AreRefusedFromAnOwnStepThatHasNotDeclaredThem) {
  spy = {};
  spy.at_step_start = [](TrainerBase& trainer) { trainer.request_metrics(); };
  const auto trainer =
      make_spied(Parts{.task = std::make_shared<Undeclared>()}, {.max_steps = 1, .batch_size = 2});
  EXPECT_THAT([&] { trainer->train(); },
              ThrowsMessage<std::logic_error>(HasSubstr("the task feeds a metric 'unknown'")));
}

TEST(TaskMetrics, AreOfAllValidationDataWhateverTheBatches) {
  double numbers = 0;
  double tokens = 0;
  for (int64_t i = 0; i < 5; ++i) {
    numbers += static_cast<double>(i * tokens_of(i));
    tokens += static_cast<double>(tokens_of(i));
  }
  for (const int64_t batch_size : {1, 2, 3, 5}) {
    Parts parts{.task = std::make_shared<Measuring>()};
    const auto trainer = make_spied(parts, {.max_steps = 1, .batch_size = batch_size});
    const NamedValues values = trainer->validation_means(std::nullopt).value();
    ASSERT_THAT(values, SizeIs(4));
    EXPECT_EQ(values[1].first, "twice") << "what it derives from losses comes first";
    EXPECT_THAT(values[2], Pair("seen", 5));
    EXPECT_EQ(values[3].first, "mean_number");
    EXPECT_DOUBLE_EQ(values[3].second, numbers / tokens);
    EXPECT_EQ(trainer->evaluate([](const auto&) {}, {}).front(), values);
  }
}

TEST(TaskMetrics, AreKnownByTheRehearsal) {
  const auto task = std::make_shared<Measuring>();
  task->feeds = false;  // One micro-batch may have nothing that a metric is of.
  const auto trainer = make_spied(Parts{.task = task}, {.max_steps = 1, .batch_size = 2});
  trainer->rehearse_validation(0);
  EXPECT_THAT(trainer->validation_names(), ElementsAre("loss", "twice", "seen", "mean_number"));
  EXPECT_TRUE(std::isnan(value_of(trainer->validation_means(1).value(), "seen", 0)));
}

class Ambiguous : public Regression {
 public:
  void declare_metrics(MetricSet& set) const override { set.add("twice", metrics::sum()); }
};

TEST(TaskMetrics, AreRefusedUnderTheNameOfAnotherValue) {
  const auto trainer =
      make_spied(Parts{.task = std::make_shared<Ambiguous>()}, {.max_steps = 1, .batch_size = 2});
  try {
    (void)trainer->validation_means(1);
    ADD_FAILURE();
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("declares a metric 'twice', and has another value"));
  }
}

}  // namespace
}  // namespace phalanx::tiny
