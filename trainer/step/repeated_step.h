// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/state.h"
#include "trainer/api/task_model.h"
#include "trainer/api/training_step.h"

namespace phalanx {

class Ranks;

/// A step's forward passes once more, to look at what they compute: nothing is differentiated,
/// updated or logged. A task without a step of its own computes nothing here. A step that only an
/// update would end is ended: after kMostPasses forward passes for each of its micro-batches the
/// next one throws std::runtime_error.
class RepeatedStep final : public TrainingStep {
 public:
  static constexpr size_t kMostPasses = 64;

  /// What is given must outlive it.
  RepeatedStep(TaskModel& model, const State& state, const Ranks& ranks,
               std::span<const std::unique_ptr<Batch>> micro_batches)
      : model_(model), state_(state), ranks_(ranks), micro_batches_(micro_batches) {}

  const State& state() const override { return state_; }
  const Ranks& ranks() const override { return ranks_; }
  std::span<const std::unique_ptr<Batch>> micro_batches() const override { return micro_batches_; }
  /// By the tokens of this rank: those of others are not asked for.
  double weight_of(const Batch& batch) const override;
  Loss forward(const Batch& batch) override;
  std::vector<at::Tensor> run(c10::function_ref<std::vector<at::Tensor>()> pass,
                              bool synchronize) override;
  void backward(const Loss& /*loss*/, const Batch& /*batch*/) override {}
  void backward(const at::Tensor& /*loss*/, const BackwardOptions& /*options*/) override {}
  void update() override {}
  void update(std::string_view /*optimizer*/) override {}
  void skip() override {}
  void log(std::string_view /*name*/, const at::Tensor& /*value*/, double /*weight*/) override {}
  void run_as_usual() override {}

 private:
  void count_pass();

  TaskModel& model_;
  const State& state_;
  const Ranks& ranks_;
  std::span<const std::unique_ptr<Batch>> micro_batches_;
  size_t passes_ = 0;
};

/// Has the task run its step once more, with this model: its passes may take gradients by
/// themselves, as they do in the step.
void repeat_step(TaskModel& model, const State& state, const Ranks& ranks,
                 std::span<const std::unique_ptr<Batch>> micro_batches);

}  // namespace phalanx
