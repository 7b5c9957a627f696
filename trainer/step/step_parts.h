// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/parameter_rules.h"
#include "trainer/api/task_model.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/precision/grad_scaler.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/late_verdict.h"

namespace phalanx {

/// What the parts of a step are made of.
struct StepSetup {
  TaskModel task_model;
  std::shared_ptr<Optimizer> optimizer;       ///< None: nothing is trained.
  std::shared_ptr<LrScheduler> lr_scheduler;  ///< Likewise.
  ParameterRules parameter_rules = {};        ///< Which parameters the optimizer treats alike.
  std::shared_ptr<DeferredInit> deferred_init = {};  ///< None: the model has its values.
  Ranks ranks = {};                                  ///< Those that train together.
  c10::Device device = c10::kCPU;                    ///< Where this rank computes.
  bool double_precision = false;                     ///< Weights and inputs in double precision.
};

/// What a step trains, and with what: the task and its model in their engine, the optimizer with
/// the parameters that this rank holds, the schedule, the loss scale, and who judges steps on a
/// device.
class StepParts {
 public:
  /// The loss scale below which an overflow ends the run: fp16's smallest number is 6e-8, and a
  /// smaller scale helps nobody.
  static constexpr double kMinLossScale = 1.0 / 65536;

  /// Initializes the model, unless several ranks may each hold a part of it only: what wraps it
  /// does then.
  explicit StepParts(StepSetup setup);
  StepParts(const StepParts&) = delete;
  StepParts& operator=(const StepParts&) = delete;

  /// All that train together.
  const Ranks& ranks() const { return ranks_; }
  /// Those among which samples are dealt and gradients averaged: all, as nothing but data is
  /// divided among ranks so far.
  const Ranks& data_ranks() const { return ranks_; }
  c10::Device device() const { return device_; }
  TaskModel& task_model() { return task_model_; }
  const TaskModel& task_model() const { return task_model_; }
  ModelBase& model() const { return task_model_.model(); }
  /// What only a trainer has that was built to train: throws std::logic_error in any other.
  Optimizer& optimizer() const;
  /// nullptr if nothing is trained.
  Optimizer* optimizer_if_any() const { return optimizer_.get(); }
  LrScheduler& lr_scheduler() const { return *lr_scheduler_; }
  std::optional<GradScaler>& scaler() { return scaler_; }
  const std::optional<GradScaler>& scaler() const { return scaler_; }
  /// Where all parameters lie on a device, from `bind_optimizer` on.
  std::optional<LateVerdict>& late_verdict() { return late_verdict_; }
  /// The trained parameters as this rank holds them, in the model's order; from `bind_optimizer`
  /// on.
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  /// One line a parameter group (describe_groups); from `group_parameters` on.
  const std::vector<std::string>& group_summaries() const { return group_summaries_; }
  /// What a batch's inputs are cast to; none: nothing. Weights in double precision take no others.
  std::optional<at::ScalarType> input_dtype() const;

  /// The initial values that the model still waits for: who wraps it fills them. Taken once.
  std::shared_ptr<DeferredInit> take_deferred_init() { return std::move(deferred_init_); }
  /// Gives the model its values, on this rank's device and in the run's precision.
  void initialize_model();
  /// Puts a wrapped task model in the place of the plain one.
  void wrap(TaskModel wrapped) { task_model_ = std::move(wrapped); }
  /// The forward pass in lower precision, and with `scaling` a loss scale; before `wrap`.
  void use_mixed_precision(at::ScalarType dtype, const std::optional<LossScaling>& scaling);
  /// Deals the trained parameters to groups by the rules. Throws UserError (parameter_groups).
  void group_parameters();
  /// Gives the optimizer what this rank holds of the groups, once, after `wrap`. With
  /// `stops_on_nonfinite` a late verdict ends the run where a loss or gradient is not finite.
  void bind_optimizer(bool stops_on_nonfinite);

 private:
  void choose_verdict(bool stops_on_nonfinite);

  Ranks ranks_;
  c10::Device device_;
  bool double_precision_;
  TaskModel task_model_;
  std::shared_ptr<Optimizer> optimizer_;
  std::shared_ptr<LrScheduler> lr_scheduler_;
  std::shared_ptr<DeferredInit> deferred_init_;
  std::optional<GradScaler> scaler_;
  std::optional<LateVerdict> late_verdict_;
  std::vector<NamedParameter> parameters_;
  ParameterRules parameter_rules_;
  std::vector<ParameterGroup> groups_;  ///< Of whole parameters, until they are bound.
  std::vector<std::string> group_summaries_;
};

}  // namespace phalanx
