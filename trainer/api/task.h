// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/attachments.h"
#include "trainer/api/batch.h"
#include "trainer/api/batch_source.h"
#include "trainer/api/loss.h"
#include "trainer/api/metric_set.h"
#include "trainer/api/model_base.h"
#include "trainer/api/named_values.h"
#include "trainer/api/prediction.h"
#include "trainer/api/prediction_source.h"
#include "trainer/api/state.h"
#include "trainer/api/task_module.h"
#include "trainer/api/task_text.h"
#include "trainer/api/training_step.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

class Stateful;

/// Why a task has no sample to show, in one line. Thrown by every rank alike, it costs the run
/// nothing; another exception of one rank would leave the others waiting for it.
class NoSample : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A task as the loop sees it: data, loss, and optional metrics and hooks. Authors derive from
/// `Task<Batch, ModelInterface>` below.
class AnyTask {
 public:
  virtual ~AnyTask() = default;

  /// The micro-batches of training or validation; nullptr where the task has no validation data.
  /// Throws UserError for data that is missing, empty or too short. Reads BatchRequest::files in
  /// the place of the validation data where `takes_files` says so.
  virtual std::unique_ptr<BatchSource> build_data(Phase phase, const BatchRequest& request) = 0;

  /// The ranks that train together, each on its own micro-batches, for what a loss, its metrics and
  /// hooks compute with all of them (trainer/ranks/ranks.h; differentiable.h for autograd). Every
  /// rank calls `loss` and the hooks as often, and each operation in the same order. A world
  /// of one before `join`.
  const Ranks& ranks() const { return ranks_; }
  /// By the trainer, before `check_model` and `build_data`.
  void join(const Ranks& ranks) { ranks_ = ranks; }

  /// Whether `build_data` reads BatchRequest::files: `trainer evaluate FOLDER FILE` is refused for
  /// a task that does not. Optional.
  virtual bool takes_files() const { return false; }

  /// The modules that the task owns beside the model, which trains them with it. Comes once for
  /// every model, when that is built and has no values yet, before `check_model` and `build_data`;
  /// before the launch, too. The task keeps their holders for its losses. A command that uses the
  /// model without the task does without them. Optional.
  virtual std::vector<TaskModule> build_modules(ModelBase& model);

  /// The loss of a micro-batch, for a model that has passed `check_model`.
  virtual Loss loss(ModelBase& model, const Batch& batch, const State& state) = 0;

  /// Has the task take what its data depends on of this very model (Task::adapt_to). Throws
  /// UserError when it does not fit the task (vocabulary, lengths, classes).
  virtual void check_model(ModelBase& model) = 0;

  /// Further figures from a phase's mean losses, for example a perplexity. Optional.
  virtual NamedValues metrics(const NamedValues& mean_losses) const;

  /// Metrics by their names, beside the loss: `set.add("accuracy", metrics::accuracy())` declares
  /// one of trainer/metrics/measures or of the task's own, and `Loss::metric` feeds it. Depends on
  /// the config alone; comes before the launch, too. Optional.
  virtual void declare_metrics(MetricSet& set) const;

  /// Text that shows what the model has learned, printed at the end of training; empty: nothing.
  /// Throws NoSample where the model cannot make one.
  virtual std::string sample(ModelBase& model, const State& state);

  /// The samples of Phase::predict; nullptr: the task makes no predictions. Comes after
  /// `check_model`. Throws UserError for files that cannot be read. Optional.
  virtual std::unique_ptr<PredictionSource> prediction_data(const PredictionInput& input);

  /// What the model makes of each sample of a batch of them. Optional.
  virtual Predictions predictions(ModelBase& model, const Batch& batch, const State& state);

  /// Scores in [0, 1] of the texts that the model writes for the samples of a batch of
  /// Phase::validate beside their targets, by sample: "exact_match", say. Optional; empty: the task
  /// has none.
  virtual std::vector<NamedValues> text_scores(ModelBase& model, const Batch& batch,
                                               const State& state);

  /// How it reads and writes texts, for commands that do so with its model. Optional.
  virtual TaskText text() const;

  /// Files that every checkpoint of the task carries, and every export: what its model needs to be
  /// used beside its weights, for example a tokenizer's. The same on all ranks, and when a run
  /// resumes. Their names do not name a folder. Optional.
  virtual Attachments attachments() const;

  /// What `build_data` has held back of the training data for validation, for the screen at the
  /// start: "the last 100 of 1000 bytes"; empty: nothing. Optional.
  virtual std::string held_back() const { return {}; }

  /// What checkpoints keep of the task itself, as their part `task`, and a resume gives back; it
  /// lives as long as the task. Optional; nullptr: nothing.
  virtual Stateful* kept_state() { return nullptr; }

  /// Runs an optimizer step, for a model that has passed `check_model`; see Task::training_step.
  virtual void run_step(TrainingStep& step, ModelBase& model) = 0;

  /// The task's own hooks, see Task below.
  virtual void epoch_starts(ModelBase& model, const State& state) = 0;
  virtual void step_ended(ModelBase& model, const State& state) = 0;

 private:
  Ranks ranks_;
};

/// The metrics that a task declares.
MetricSet declared_metrics(const AnyTask& task);

/// Base of every task. `BatchT` derives from Batch, `ModelInterface` is an abstract class with a
/// `kInterface` name; a model that does not list it is refused before launch. A task may have a
/// `static std::vector<std::string_view> metric_names()`: all values that its validations may give,
/// "loss" first; those that it declares (AnyTask::declare_metrics) need not be among them. A field
/// that names another one (checkpoint.keep_best.metric, early_stopping.metric) is then refused
/// before launch, and not only before the first step. Without it, "loss" and declared metrics are
/// all that a task gives which declares some, unless it overrides `metrics`; one with named losses
/// or scores of texts lists them.
template <class BatchT, class ModelInterface>
class Task : public AnyTask {
 public:
  /// The interface that a model must offer.
  static std::string_view required_interface() { return ModelInterface::kInterface; }

  /// The loss of one micro-batch: the mean over its own `batch.tokens` terms. It depends neither on
  /// other micro-batches nor on `batch.counts`; the trainer weighs the means. One that compares its
  /// samples with those of other ranks, as a contrastive loss, gets these through `ranks()`, by
  /// differentiable::all_gather. A batch always has samples. Its `tokens` is 0 only where a data
  /// set says so (all targets masked): the loss is then 0, and still computed from the model's
  /// outputs, since all ranks must run the same backward pass.
  virtual Loss compute_loss(ModelInterface& model, const BatchT& batch, const State& state) = 0;

  /// Runs an optimizer step in the task's own way: several forward passes, losses and backward
  /// passes, in its order. It ends with one `update` or `skip`. By default a forward and a backward
  /// pass of each micro-batch, then the update. Validations still call `compute_loss`. The search
  /// for what is not finite, as the run ends by it, calls this once more with a step that neither
  /// differentiates nor updates (RepeatedStep), and `compute_loss` where that shows nothing.
  /// Optional.
  virtual void training_step(TrainingStep& step, ModelInterface&) { step.run_as_usual(); }

  /// Throws UserError when this model's sizes do not fit this task's data. Optional.
  virtual void check(const ModelInterface&) const {}

  /// Takes what data and predictions depend on of the model: its vocabulary, say. Comes right
  /// before `check`, and before `build_data`. Optional.
  virtual void adapt_to(const ModelInterface&) {}

  /// See AnyTask::sample. Optional.
  virtual std::string show_sample(ModelInterface&, const State&) { return {}; }

  /// See AnyTask::predictions. Optional.
  virtual Predictions predict(ModelInterface&, const BatchT&, const State&) { return {}; }

  /// See AnyTask::text_scores. Optional.
  virtual std::vector<NamedValues> score_texts(ModelInterface&, const BatchT&, const State&) {
    return {};
  }

  /// Before the first step of an epoch; a sharded model's parameters have no values here. Optional.
  virtual void on_epoch_start(ModelInterface&, const State&) {}

  /// At the end of each step, also of one that was skipped, but not of one that was undone; as
  /// above. Optional.
  virtual void on_step_end(ModelInterface&, const State&) {}

  Loss loss(ModelBase& model, const Batch& batch, const State& state) final {
    return compute_loss(interface_of(model), static_cast<const BatchT&>(batch), state);
  }
  void check_model(ModelBase& model) final {
    adapt_to(interface_of(model));
    check(interface_of(model));
  }
  std::string sample(ModelBase& model, const State& state) final {
    return show_sample(interface_of(model), state);
  }
  Predictions predictions(ModelBase& model, const Batch& batch, const State& state) final {
    return predict(interface_of(model), static_cast<const BatchT&>(batch), state);
  }
  std::vector<NamedValues> text_scores(ModelBase& model, const Batch& batch,
                                       const State& state) final {
    return score_texts(interface_of(model), static_cast<const BatchT&>(batch), state);
  }
  void run_step(TrainingStep& step, ModelBase& model) final {
    training_step(step, interface_of(model));
  }
  void epoch_starts(ModelBase& model, const State& state) final {
    on_epoch_start(interface_of(model), state);
  }
  void step_ended(ModelBase& model, const State& state) final {
    on_step_end(interface_of(model), state);
  }

 protected:
  /// The model as the task sees it, for `build_modules`.
  static ModelInterface& interface_of(ModelBase& model) {
    auto* interface = model.as<ModelInterface>();
    if (interface == nullptr) {
      throw std::logic_error("the model lists the interface " +
                             std::string(ModelInterface::kInterface) +
                             " but does not derive from it");
    }
    return *interface;
  }
};

}  // namespace phalanx
