// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/named_values.h"
#include "trainer/api/parameter_rules.h"
#include "trainer/api/prediction.h"
#include "trainer/config/tree/forward.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/optimizer_part.h"

namespace phalanx {

class AnyTask;
class DeferredInit;
class ModelBase;
class PredictionSource;
class TaskModel;
struct State;

/// The registered classes that a config has chosen, built.
struct Components {
  std::shared_ptr<AnyTask> task;
  std::shared_ptr<ModelBase> model;
  std::shared_ptr<Optimizer> optimizer;       ///< Of a run with one; none: see TrainerSetup.
  std::shared_ptr<LrScheduler> lr_scheduler;  ///< Its schedule.
};

/// What a trainer is built for.
enum class Purpose {
  training,
  evaluation,  ///< No optimizer, and no data but what `evaluate` asks for.
  use,         ///< Its model alone; perhaps without a task.
};

/// What a trainer is made of: its resolved config, the components, and the ranks of the run.
struct TrainerSetup {
  std::shared_ptr<const config::Node> config;
  Components components;
  Ranks ranks;                                  ///< All that train together.
  std::optional<Ranks> data_ranks = {};         ///< World::data_ranks; none: all.
  int64_t idle_ranks = 0;                       ///< See StepSetup.
  c10::Device device = c10::kCPU;               ///< Where this rank computes.
  std::shared_ptr<DeferredInit> deferred_init;  ///< Fills the model's values; none: they are there.
  ParameterRules parameter_rules = {};          ///< Which parameters the optimizer treats alike.
  /// Several optimizers, in the place of the components' one with its schedule and rules.
  std::vector<OptimizerPart> optimizers = {};
  Purpose purpose = Purpose::training;
};

/// Fills a model where it computes.
using LoadModel = std::function<void(const TaskModel& model)>;

/// Told how far some work is: `begin` how many pieces it has and what they are ("micro-batches"),
/// then `one_done` after each. Both may be empty.
struct WorkCount {
  std::function<void(int64_t pieces, const char* unit)> begin;
  std::function<void()> one_done;
};

/// How much of the validation data a validation takes.
struct ValidationAmount {
  std::optional<int64_t> max_batches = {};  ///< For each rank; nothing: all.
  int64_t texts = 0;  ///< Samples that texts are written for, and compared with their targets.
};

/// What is evaluated.
struct Evaluation {
  /// Data in place of the config's, one set after the other: the files of each. Without any the
  /// config's validation data.
  std::vector<std::vector<std::filesystem::path>> sets;
  ValidationAmount amount;  ///< The amount taken of each set.
  WorkCount count;          ///< Begins anew with each set.
};

/// What predictions are made of, and where they go.
struct PredictionRequest {
  std::vector<std::filesystem::path> files;
  /// Samples of a batch. Batches are cut by the samples' numbers and computed whole by one rank, so
  /// that a prediction does not depend on the ranks.
  int64_t batch_size = 1;
  bool marks_problems = false;  ///< A sample that cannot be read gets a mark, and ends nothing.
  /// The text for a sample: of its prediction, or of what is wrong with it.
  std::function<std::string(int64_t sample, const Prediction& prediction)> format;
  std::function<std::string(int64_t sample, const std::string& problem)> format_problem;
  /// On rank 0, first: of how many samples there are predictions already, from the first on; whole
  /// batches.
  std::function<int64_t(const PredictionSource& source)> done;
  /// On rank 0: the texts of the next samples, in their order.
  std::function<void(const std::vector<std::string>& texts)> take;
};

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

  /// Means over the data of all ranks, and the task's metrics, of each set, of the model that
  /// `load` fills once it is where it computes: sharded, it is never whole on a rank. Writes
  /// nothing.
  virtual std::vector<NamedValues> evaluate(const LoadModel& load,
                                            const Evaluation& evaluation) = 0;

  /// Calls `action` on every rank with the model that `load` has filled, in its mode for
  /// evaluation, without gradients.
  virtual void use(const LoadModel& load, const LoadModel& action) = 0;

  /// Makes predictions with the model that `load` has filled. Throws UserError for a task that
  /// makes none, and for a sample that cannot be read.
  virtual void predict(const LoadModel& load, const PredictionRequest& request) = 0;

  /// Where the run stands, also after an error.
  virtual const State& state() const = 0;

  /// Whether a limit of the run is reached, or something has ended it early. A signal to stop does
  /// not finish a run.
  virtual bool finished() const = 0;

  /// Why the run has ended before its limits, in a few words; empty otherwise.
  virtual const std::string& early_end() const = 0;
};

}  // namespace phalanx
