// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/api/training_step.h"

namespace phalanx {

/// A step whose micro-batches are scattered over replicas: they are not of the task's type, so a
/// task that asks for them is refused. Passes of its own that it runs without them see the original
/// model.
class UsualStep final : public TrainingStep {
 public:
  UsualStep(TrainingStep& step, std::string task) : step_(step), task_(std::move(task)) {}

  /// Throws UserError.
  std::span<const std::unique_ptr<Batch>> micro_batches() const override;

  const State& state() const override { return step_.state(); }
  const Ranks& ranks() const override { return step_.ranks(); }
  double weight_of(const Batch& batch) const override { return step_.weight_of(batch); }
  Loss forward(const Batch& batch) override { return step_.forward(batch); }
  std::vector<at::Tensor> run(c10::function_ref<std::vector<at::Tensor>()> pass,
                              bool synchronize) override {
    return step_.run(pass, synchronize);
  }
  void backward(const Loss& loss, const Batch& batch) override { step_.backward(loss, batch); }
  void backward(const at::Tensor& loss, const BackwardOptions& options) override {
    step_.backward(loss, options);
  }
  void update() override { step_.update(); }
  void update(std::string_view optimizer) override { step_.update(optimizer); }
  void skip() override { step_.skip(); }
  void log(std::string_view name, const at::Tensor& value, double weight) override {
    step_.log(name, value, weight);
  }
  void run_as_usual() override { step_.run_as_usual(); }

 private:
  TrainingStep& step_;
  std::string task_;
};

}  // namespace phalanx
