// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tests/trainer/loop/tiny.h"
#include "trainer/api/training_step.h"

namespace phalanx::tiny {

/// The tiny task with a training step of its own.
class OwnStep : public Regression {
 public:
  using Run = std::function<void(OwnStep& task, TrainingStep& step, Regressor& model)>;

  explicit OwnStep(Run run, TaskOptions options = {})
      : Regression(std::move(options)), run_(std::move(run)) {}

  void training_step(TrainingStep& step, Regressor& model) override { run_(*this, step, model); }

 private:
  Run run_;
};

/// The usual step, written out.
inline void usual_step(OwnStep&, TrainingStep& step, Regressor&) {
  for (const auto& batch : step.micro_batches()) step.backward(step.forward(*batch), *batch);
  step.update();
}

/// Half the loss of each of two passes over a micro-batch.
inline void two_forwards(OwnStep&, TrainingStep& step, Regressor&) {
  for (const auto& batch : step.micro_batches()) {
    const at::Tensor first = step.forward(*batch).total();
    const at::Tensor second = step.forward(*batch).total();
    step.backward(Loss(first.mul(0.5).add(second.mul(0.5))), *batch);
  }
  step.update();
}

/// Half the loss of a pass, twice.
inline void two_backwards(OwnStep&, TrainingStep& step, Regressor&) {
  for (const auto& batch : step.micro_batches()) {
    const at::Tensor loss = step.forward(*batch).total();
    const double half = step.weight_of(*batch) / 2;
    step.backward(loss, {.weight = half, .retain_graph = true});
    step.backward(loss, {.weight = half});
  }
  step.update();
}

/// The usual step by a pass of its own.
inline void own_passes(OwnStep& task, TrainingStep& step, Regressor& model) {
  for (const auto& batch : step.micro_batches()) {
    const auto loss = [&] {
      const auto& samples = static_cast<const Samples&>(*batch);
      return std::vector{task.compute_loss(model, samples, step.state()).total()};
    };
    const bool is_last = batch == step.micro_batches().back();
    step.backward(step.run(loss, is_last).front(), {.weight = step.weight_of(*batch)});
  }
  step.update();
}

}  // namespace phalanx::tiny
