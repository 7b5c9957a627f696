// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/trainer/loop/flowers.h"
#include "trainer/api/training_step.h"

namespace phalanx::flowers {

/// The flowers' task with a step of its own: a pass by TrainingStep::run and a backward pass of
/// each micro-batch.
class OwnClassification : public Classification {
 public:
  /// The loss of such a pass.
  using LossOf =
      std::function<at::Tensor(Classification& task, Classifier& model, const FlowerBatch& batch)>;

  OwnClassification(const std::vector<Flower>& training, const Faults& faults, LossOf loss_of)
      : Classification(file_of(training, faults), file_of(eight_flowers(), {}), faults),
        loss_of_(std::move(loss_of)) {}

  void training_step(TrainingStep& step, Classifier& model) override {
    for (const auto& batch : step.micro_batches()) {
      const auto pass = [&] {
        return std::vector{loss_of_(*this, model, static_cast<const FlowerBatch&>(*batch))};
      };
      const bool is_last = batch == step.micro_batches().back();
      step.backward(step.run(pass, is_last).front(), {.weight = step.weight_of(*batch)});
    }
    step.update();
  }

 private:
  LossOf loss_of_;
};

/// The usual loss.
inline at::Tensor usual_loss(Classification& task, Classifier& model, const FlowerBatch& batch) {
  return task.compute_loss(model, batch, {}).total();
}

inline Parts own_run_of(const std::vector<Flower>& training, const Faults& faults = {},
                        OwnClassification::LossOf loss_of = usual_loss) {
  return {.task = std::make_shared<OwnClassification>(training, faults, std::move(loss_of)),
          .model = network(faults)};
}

}  // namespace phalanx::flowers
