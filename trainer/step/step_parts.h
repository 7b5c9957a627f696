// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/api/task_model.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/precision/grad_scaler.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/late_verdict.h"
#include "trainer/step/optimizer_part.h"

namespace phalanx {

/// What the parts of a step are made of.
struct StepSetup {
  TaskModel task_model;
  std::vector<OptimizerPart> optimizers = {};        ///< Empty: nothing is trained.
  std::shared_ptr<DeferredInit> deferred_init = {};  ///< None: the model has its values.
  Ranks ranks = {};                                  ///< All that train together.
  std::optional<Ranks> data_ranks = {};              ///< World::data_ranks; none: all.
  /// The last of the data ranks, which get no samples: they hold parts of the model for the others,
  /// and their engine runs no passes.
  int64_t idle_ranks = 0;
  c10::Device device = c10::kCPU;  ///< Where this rank computes.
  bool double_precision = false;   ///< Weights and inputs in double precision.
};

/// What a step trains, and with what: the task and its model in their engine, the optimizers with
/// their schedules and the parameters that this rank holds, the loss scale, and who judges steps on
/// a device.
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
  /// Those among which samples are dealt and gradients averaged (World::data_ranks).
  const Ranks& data_ranks() const { return data_ranks_; }
  /// How many of these compute: among so many samples are dealt and gradients averaged.
  int64_t shares() const { return data_ranks_.world_size() - idle_ranks_; }
  /// The part of the samples that this rank gets. One that does not compute gets a copy of the last
  /// part, which counts nowhere (Batch::counts).
  int64_t share() const { return is_idle() ? shares() - 1 : data_ranks_.rank(); }
  bool is_idle() const { return data_ranks_.rank() >= shares(); }
  c10::Device device() const { return device_; }
  TaskModel& task_model() { return task_model_; }
  const TaskModel& task_model() const { return task_model_; }
  ModelBase& model() const { return task_model_.model(); }
  /// One, or several of a config's `optimizers`; empty: nothing is trained.
  std::span<const OptimizerPart> optimizers() const { return optimizers_; }
  /// The one of this name among several. Throws std::logic_error for another name.
  const OptimizerPart& optimizer(std::string_view name) const;
  /// The states of all optimizers (Optimizer::state). Throws std::logic_error where nothing is
  /// trained.
  std::vector<ShardedTensorView> optimizer_state() const;
  std::optional<GradScaler>& scaler() { return scaler_; }
  const std::optional<GradScaler>& scaler() const { return scaler_; }
  /// Where all parameters lie on a device, from `bind_optimizers` on.
  std::optional<LateVerdict>& late_verdict() { return late_verdict_; }
  /// The trained parameters as this rank holds them, in the model's order; from `bind_optimizers`
  /// on.
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
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
  /// Deals the trained parameters to the optimizers and their groups by the rules. Throws UserError
  /// (groups_by_optimizer).
  void group_parameters();
  /// Gives the optimizers what this rank holds of the groups, once, after `wrap`. With
  /// `stops_on_nonfinite` a late verdict ends the run where a loss or gradient is not finite.
  void bind_optimizers(bool stops_on_nonfinite);

 private:
  void choose_verdict(bool stops_on_nonfinite);

  Ranks ranks_;
  Ranks data_ranks_;
  int64_t idle_ranks_;
  c10::Device device_;
  bool double_precision_;
  TaskModel task_model_;
  std::vector<OptimizerPart> optimizers_;
  std::shared_ptr<DeferredInit> deferred_init_;
  std::optional<GradScaler> scaler_;
  std::optional<LateVerdict> late_verdict_;
  std::vector<NamedParameter> parameters_;
  /// By optimizer, of whole parameters, until they are bound.
  std::vector<std::vector<ParameterGroup>> groups_;
};

}  // namespace phalanx
