// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/api/loss.h"
#include "trainer/api/training_step.h"
#include "trainer/step/decision.h"
#include "trainer/step/nonfinite_search.h"
#include "trainer/step/ongoing_step.h"
#include "trainer/step/pass_context.h"
#include "trainer/step/schedule_point.h"
#include "trainer/step/set_aside.h"
#include "trainer/step/step_hooks.h"
#include "trainer/step/weight_update.h"

namespace phalanx {

/// Runs steps of the task over the micro-batches of each, and moves the weights.
class TrainStep final : public TrainingStep {
 public:
  /// `samples`: those of the training; they must outlive it, as `hooks` and what `context` refers
  /// to.
  TrainStep(const PassContext& context, const UpdateRules& rules, const KnownSamples& samples,
            StepHooks& hooks);
  TrainStep(const TrainStep&) = delete;
  TrainStep& operator=(const TrainStep&) = delete;

  OngoingStep& ongoing() { return ongoing_; }
  const OngoingStep& ongoing() const { return ongoing_; }

  /// Has the task run the step that has begun. `point`: where the schedules are. Throws
  /// std::logic_error for a task that neither updates nor skips, or that leaves
  /// gradients behind.
  void run_task(const SchedulePoint& point);
  /// See WeightUpdate.
  void guard_by(StepGuard& guard) { update_.guard_by(guard); }
  bool is_guarded() const { return update_.is_guarded(); }
  void settle() { update_.settle(); }

  const State& state() const override { return context_.state; }
  const Ranks& ranks() const override { return context_.parts.data_ranks(); }
  std::span<const std::unique_ptr<Batch>> micro_batches() const override {
    return ongoing_.micro_batches;
  }
  double weight_of(const Batch& batch) const override;
  Loss forward(const Batch& batch) override;
  std::vector<at::Tensor> run(c10::function_ref<std::vector<at::Tensor>()> pass,
                              bool synchronize) override;
  void backward(const Loss& loss, const Batch& batch) override;
  void backward(const at::Tensor& loss, const BackwardOptions& options) override;
  void update() override;
  void update(std::string_view optimizer) override;
  void skip() override;
  void log(std::string_view name, const at::Tensor& value, double weight) override;
  void run_as_usual() override;

 private:
  /// How the passes of the present step have gone so far.
  struct Progress {
    bool is_usual = false;            // run_as_usual
    bool has_updated = false;         // one or all optimizers
    bool is_over = false;             // by an update or a skip
    bool has_gone_back = false;       // a backward pass has come
    bool forward_reduces = false;     // the newest forward pass has its backward reduce
    bool are_gradients_local = true;  // no backward pass has reduced since the newest that did not
  };

  void begin_forward(bool synchronize);
  void begin_backward();
  // Ends the passes of a step.
  void end(const Decision& decision);
  // Before an update: throws where gradients are this rank's alone.
  void require_reduced() const;
  // Of a step whose task has returned without an update of all or a skip.
  void end_after_updates_by_name();
  void require_no_gradients() const;
  // Adds what the task feeds for its metrics, where they are asked for.
  void measure(const Batch& batch, Loss& loss);
  void add_parts(const Loss& loss, double share);
  // Adds the gradients of a weighed loss. `counts`: it is part of the step's loss.
  void differentiate(const at::Tensor& loss, bool counts, bool retain_graph, const PassWork& work);
  // The gradients of all optimizers but these.
  SetAside gradients_not_of(const std::vector<std::string>& optimizers) const;
  // What the gradient of a loss begins with.
  at::Tensor seed_of(const at::Tensor& loss, bool counts) const;
  std::string logged_names() const;
  // Throws on all ranks where they decide otherwise, or log other names.
  void require_agreement(const Decision& decision) const;

  PassContext context_;
  UpdateRules rules_;
  const KnownSamples& samples_;
  StepHooks& hooks_;
  NonfiniteSearch search_;
  OngoingStep ongoing_;
  WeightUpdate update_;
  SchedulePoint point_;
  Progress progress_;
};

}  // namespace phalanx
