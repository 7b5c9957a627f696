// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "trainer/api/named_values.h"
#include "trainer/config/tree/forward.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

class AnyTask;
class DeferredInit;
class LrScheduler;
class ModelBase;
class Optimizer;
class TaskModel;
struct State;

/// The registered classes that a config has chosen, built.
struct Components {
  std::shared_ptr<AnyTask> task;
  std::shared_ptr<ModelBase> model;
  std::shared_ptr<Optimizer> optimizer;
  std::shared_ptr<LrScheduler> lr_scheduler;
};

/// What a trainer is made of: its resolved config, the components, and who trains with it.
struct TrainerSetup {
  std::shared_ptr<const config::Node> config;
  Components components;
  Ranks ranks;
  c10::Device device = c10::kCPU;               ///< Where this rank computes.
  std::shared_ptr<DeferredInit> deferred_init;  ///< Of the model's values; none: they are there.
};

/// Fills a model where it computes.
using LoadModel = std::function<void(const TaskModel& model)>;

/// A trainer as commands see it, whatever its composition.
class AnyTrainer {
 public:
  virtual ~AnyTrainer() = default;

  /// Has `train` call `action` on every rank once it has put back what it resumes from, before its
  /// first step.
  virtual void when_restored(std::function<void()> action) = 0;

  /// Has `train` call `action` with each step's number once the step has moved the weights.
  virtual void when_step_ends(std::function<void(int64_t step)> action) = 0;

  /// Trains to the run's limit, or until a signal asks to stop.
  virtual void train() = 0;

  /// Means over the whole validation data of all ranks, and the task's metrics, of the model that
  /// `load` fills once it is where it computes: sharded, it is never whole on a rank. Writes
  /// nothing.
  virtual NamedValues evaluate(const LoadModel& load) = 0;

  /// Where the run stands, also after an error.
  virtual const State& state() const = 0;

  /// Whether a limit of the run is reached. A signal to stop does not finish a run.
  virtual bool finished() const = 0;
};

}  // namespace phalanx
