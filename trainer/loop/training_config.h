// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/tree/forward.h"
#include "trainer/config/tree/interval.h"
#include "trainer/precision/numerics.h"

namespace phalanx {

struct State;

/// What one epoch comes to.
struct EpochSize {
  int64_t samples = 0;  ///< Over all ranks.
  int64_t steps = 0;    ///< Optimizer steps.
};

/// The trainer's own fields, at the top of every config (ml's BaseTrainerConfig).
struct TrainerConfig {
  std::string name;
  std::optional<std::string> exp_name;
  std::string exp_dir;
  std::string log_dir_name = "logs";
  bool use_double_weight_precision = false;

  static void describe(config::Schema<TrainerConfig>& s);
};

/// What learning-rate schedules count (step_lr_interval of TorchTNT's AutoUnit).
enum class LrInterval { step, epoch };

/// The section `training`: how long, how large a step, what bounds it.
struct TrainingConfig {
  std::optional<int64_t> max_steps;
  std::optional<int64_t> max_epochs;
  std::optional<int64_t> max_samples;
  std::optional<config::Interval> max_seconds;
  std::optional<int64_t> max_steps_per_epoch;
  int64_t batch_size = 1;
  std::optional<int64_t> global_batch_size;
  std::optional<int64_t> gradient_accumulation_steps;
  std::optional<double> clip_grad_norm;
  std::optional<double> clip_grad_value;
  bool stop_on_nonfinite_loss = true;
  int64_t seed = 0;
  LrInterval step_lr_interval = LrInterval::step;
  MatmulPrecision float32_matmul_precision = MatmulPrecision::highest;
  bool deterministic = false;
  bool deterministic_warn_only = false;

  static void describe(config::Schema<TrainingConfig>& s);

  Numerics numerics() const {
    return {.float32_matmul = float32_matmul_precision,
            .deterministic = deterministic,
            .warn_only = deterministic_warn_only};
  }

  /// Micro-batches a rank and step: given, or following from global_batch_size. Throws UserError
  /// when the global batch does not come out whole, or is more than kMaxSamplesAStep.
  int64_t accumulation(int64_t world_size) const;

  /// The same for a run that goes on with steps of `global_batch` samples, at most
  /// kMaxSamplesAStep, perhaps on another number of ranks. Throws UserError saying what would fit
  /// when they do not come out whole.
  int64_t accumulation_keeping(int64_t global_batch, int64_t world_size) const;

  /// An epoch, where a pass over the data is `pass` and a step has `global_batch` samples.
  EpochSize epoch_of(const EpochSize& pass, int64_t global_batch) const;

  /// Steps of the whole run, of `global_batch` samples each, where a pass over the data is `pass`;
  /// nothing if max_seconds alone ends it.
  std::optional<int64_t> total_steps(const EpochSize& pass, int64_t global_batch) const;

  /// Whether a run in this state has reached one of its limits.
  bool limit_reached(const State& state) const;
};

/// The section `training` of a resolved config.
TrainingConfig training_config(const config::Node& resolved);

}  // namespace phalanx
