// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/batch_source.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/screen_line.h"
#include "trainer/api/state.h"
#include "trainer/api/stateful.h"
#include "trainer/api/step_result.h"
#include "trainer/api/task_model.h"
#include "trainer/loop/broken_samples.h"
#include "trainer/loop/late_verdict.h"
#include "trainer/loop/signal_poll.h"
#include "trainer/loop/step_fault.h"
#include "trainer/loop/step_feed.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/loop/training_config.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/precision/grad_scaler.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/side_stream.h"

namespace phalanx {

class ValidationSums;

/// Where the wall time of this process's training went, in seconds.
struct TimeSplit {
  double data = 0;              ///< Waiting for micro-batches.
  double forward_backward = 0;  ///< Losses and gradients.
  double update = 0;            ///< Clipping and the optimizer.
  double validation = 0;        ///< Passes over the validation data.
  double total = 0;             ///< All of it; the rest is what mixins do (saving, logging).
};

/// Validation data of a name of its own, beside the task's.
struct ValidationSet {
  std::string name;
  std::shared_ptr<AnyTask> task;  ///< That made the data: its metrics are these data's.
  std::unique_ptr<BatchSource> data;
};

/// Called around each micro-batch of a validation.
struct ValidationHooks {
  std::function<void(const State&, const Batch&)> before;
  std::function<void(const State&, const Batch&, const Loss&)> after;
  /// Between two of them, on all ranks, where a signal asks for a checkpoint.
  std::function<void()> save;
  WorkCount count;
};

/// Called around each batch of predictions of this rank.
struct PredictionHooks {
  std::function<void(const State&, const Batch&)> before;
  std::function<void(const State&, const Batch&, const Predictions&)> after;
};

/// All of a trainer that does not depend on its composition: the verbs that the loop in
/// trainer.h is told in, and what mixins may ask and do.
class TrainerBase : public AnyTrainer {
 public:
  /// Builds the data, binds the optimizer and checks that everything fits together. Writes
  /// nothing. Throws UserError.
  explicit TrainerBase(TrainerSetup setup);

  // What mixins may ask.
  const State& state() const final { return state_; }
  const TrainerConfig& config() const { return config_; }
  const TrainingConfig& training() const { return training_; }
  const config::Node& resolved_config() const { return *resolved_config_; }
  const Ranks& ranks() const { return ranks_; }
  /// Where this rank computes: batches are moved there, and the model lies there.
  at::Device device() const { return device_; }
  const TaskModel& task_model() const { return task_model_; }
  ModelBase& model() const { return task_model_.model(); }
  Purpose purpose() const { return purpose_; }
  /// What only a trainer has that was built to train: throws std::logic_error in any other.
  Optimizer& optimizer() const;
  const BatchSource& training_data() const;
  const BatchSource* validation_data() const { return validation_data_.get(); }
  const std::vector<ValidationSet>& validation_sets() const { return validation_sets_; }
  /// Whether there is any data to validate on.
  bool can_validate() const { return validation_data_ || !validation_sets_.empty(); }
  TimeSplit time_split() const;
  /// Seconds of training by now: state().elapsed, and the time since then.
  double elapsed_now() const;
  /// One line a parameter group (describe_groups).
  const std::vector<std::string>& group_summaries() const { return group_summaries_; }
  /// Samples an optimizer step over all ranks.
  int64_t global_batch_size() const {
    return training_.batch_size * accumulation_ * ranks_.world_size();
  }
  /// Steps of the whole run, where its limits tell them beforehand.
  std::optional<int64_t> total_steps() const { return total_steps_; }
  bool finished() const final {
    return (training_.limit_reached(state_) || !early_end_.empty()) && !state_.validation_due;
  }
  const std::string& early_end() const final { return early_end_; }
  void when_restored(std::function<void()> action) final { when_restored_ = std::move(action); }
  void when_step_ends(std::function<void(int64_t)> action) final {
    when_step_ends_ = std::move(action);
  }

  /// What checkpoints keep beside model and optimizer.
  std::span<const NamedStateful> kept_state() const { return kept_state_; }

  // What mixins may do.
  /// Has checkpoints keep a state of a mixin, which outlives the training, as the part `name`; from
  /// on_setup.
  void keep_state(std::string name, Stateful& state) {
    kept_state_.push_back({.name = std::move(name), .state = &state});
  }
  /// The forward pass in lower precision, and with `scaling` a loss scale; from on_setup, before
  /// the model is wrapped.
  void use_mixed_precision(at::ScalarType dtype, const std::optional<LossScaling>& scaling);
  /// The initial values that the model still waits for: who wraps it fills them. Taken once.
  std::shared_ptr<DeferredInit> take_deferred_init() { return std::move(deferred_init_); }
  /// Gives the model its values, on this rank's device and in the run's precision.
  void initialize_model();
  /// Puts a wrapped task model in the place of the plain one; from on_setup.
  void wrap(TaskModel wrapped) { task_model_ = std::move(wrapped); }
  /// Keeps a run's samples a step when it goes on with another number of ranks: the micro-batches a
  /// rank and step follow. Throws UserError saying what would fit where they do not come out whole.
  void keep_global_batch_size(int64_t samples);
  /// Seeds this rank's random numbers from the run's seed, its rank and its step.
  void seed_rank() const;
  /// Goes to where a checkpoint was taken; the weights are put back by who calls.
  void restore(const State& state);
  /// Makes sure of the last step: waits for it on a device, where the run goes on before it knows
  /// whether the loss and the gradients were finite, and throws what is wrong with it. Before
  /// anything is made of the step (a log, a checkpoint). Every rank calls it, or none.
  void settle();
  /// Ends the training, as finished, after the present step. `why` is told at the end; it is not
  /// empty. Every rank calls it.
  void end_early(std::string why) { early_end_ = std::move(why); }
  /// Has validations measure other weights: `exchange` puts them into the model's place, and,
  /// called once more, the model's own back.
  void validate_with(std::function<void()> exchange) { exchange_weights_ = std::move(exchange); }
  /// Measure this step's gradient norm although nothing clips by it; from on_step_start.
  void request_grad_norm() { grad_norm_requested_ = true; }

  /// Rank 0's value, on every rank, where one of them must decide. Every rank calls it, or none.
  double of_first_rank(double value) const;
  /// The step's losses over all ranks, the sum first. Every rank calls it, or none.
  NamedValues global_losses(const StepResult& result) const;
  /// Adds a set of validation data: these files, read as the task's own validation data. `task` is
  /// one more of the run's config. Throws UserError. Every rank calls it.
  void add_validation_set(const std::string& name, std::shared_ptr<AnyTask> task,
                          std::vector<std::filesystem::path> files);
  /// Means over the validation data of all ranks (of `max_batches` micro-batches of each, at equal
  /// distances) and the task's metrics, then those of the named sets, as "books/loss"; nothing
  /// where a signal to stop has ended it early, as it does between the steps of a training. Leaves
  /// training's random numbers, data order and mode as they were.
  std::optional<NamedValues> validation_means(std::optional<int64_t> max_batches,
                                              const ValidationHooks& hooks = {});
  /// Means over all ranks of the task's scores (AnyTask::text_scores) of the first samples of the
  /// validation data in its own order (BatchSource::start_first); nothing as above. Throws
  /// UserError for a task that has none.
  std::optional<NamedValues> text_score_means(int64_t samples, const ValidationHooks& hooks = {});
  /// Validates one micro-batch, and writes texts for so many samples: what
  /// goes wrong with a validation must not come after hours of training. Throws as both above.
  void rehearse_validation(int64_t texts);
  /// The values that a validation gives, by the rehearsal; empty where it has found none.
  const std::vector<std::string>& validation_names() const { return validation_names_; }
  /// The samples that this process's training and its last validation left out as broken, in one
  /// line; empty without any. Every rank calls it, or none.
  std::string broken_samples() const;
  /// What mixins add to the start screen.
  virtual std::vector<ScreenLine> screen_lines() = 0;
  /// The task's text that shows what the model has learned, computed as in validation.
  std::string sample();

 protected:
  /// What a user is told of an error.
  static std::string text_of(const std::exception& error);
  /// Throws UserError for files in the place of the validation data that the task does not read.
  void require_files_are_read(bool are_given) const;
  /// After the mixins' set-up. Throws UserError where several ranks would train each for itself.
  void require_engine() const;
  /// Gives the optimizer what this rank holds of the model.
  void bind_optimizer();
  /// Takes a set of an evaluation as the validation data. Throws UserError if there is none.
  void open_validation(std::vector<std::filesystem::path> files);
  /// See validate_with; empty: validations measure the model's own weights.
  const std::function<void()>& exchange_weights() const { return exchange_weights_; }
  /// From here to `end_validation` a checkpoint says that this step is still to be validated.
  void begin_validation() { state_.validation_due = answers_signals(); }
  void end_validation(const NamedValues& values);
  /// What is done to the model, and of which micro-batch, in an error.
  struct Work {
    std::string_view activity;
    const Batch* batch = nullptr;
    const KnownSamples* samples = nullptr;  ///< Those of the micro-batch.
  };
  /// Calls `action` with the model in its mode for evaluation, without gradients; training's random
  /// numbers stay as they were.
  void use_model(const Work& work, const LoadModel& action);

  /// Makes predictions, batch by batch.
  void make_predictions(const PredictionRequest& request, const PredictionHooks& hooks);

  /// From here on time counts as this process's training.
  void begin_training() { started_ = Clock::now(); }
  bool begin_epoch();
  bool begin_step();
  std::span<const std::unique_ptr<Batch>> micro_batches() const { return micro_batches_; }
  Loss forward(const Batch& batch);
  void backward(const Loss& loss, const Batch& batch);
  void update();
  const StepResult& end_step();
  /// All its samples are consumed; a limit or a signal can end the steps before that.
  bool epoch_is_over() const;
  /// An epoch ends once its last step has been validated, if that is due.
  bool epoch_can_end() const { return epoch_is_over() && !state_.validation_due; }
  void end_epoch();

  /// After the mixins' restore.
  void restored() const {
    if (when_restored_) when_restored_();
  }
  /// Which of the mixins' options would need less memory.
  virtual std::vector<std::string> memory_advice() = 0;

 private:
  using Clock = std::chrono::steady_clock;

  BatchRequest data_request() const;
  void prepare_training();
  // Fetches a step's micro-batches, and begins to exchange their counts.
  void prepare_step(int64_t step);
  // Both throw std::runtime_error where more are broken than may be, on all ranks alike.
  void leave_out_broken(int64_t on_all_ranks);
  void require_few(const BrokenSamples& broken, const BatchSource& data) const;
  void bring_micro_batches();
  // Whether one follows this one in its epoch, as far as can be known before this one's end.
  bool step_follows() const;
  // For errors of collectives, and for the last words of a rank that ends abruptly.
  void enter(std::string_view activity) const { enter(state_.step, activity); }
  void enter(int64_t step, std::string_view activity) const;
  std::unique_ptr<Batch> next_batch(BatchSource& data) const;
  // Whether a signal may end a validation now, or save within it: between the steps of a training.
  bool answers_signals() const { return purpose_ == Purpose::training && !is_in_step_; }
  // The data of a validation, and who measures on it.
  struct Measured {
    std::string prefix;  ///< Of the values' names.
    BatchSource& data;
    const AnyTask& task;
  };
  // The task's own data and the named sets. Throws UserError without any.
  std::vector<Measured> all_measured();
  // A pass over validation data; nothing where a signal ends it.
  std::optional<ValidationSums> sum_validation(const Measured& measured,
                                               std::optional<int64_t> max_batches,
                                               const ValidationHooks& hooks);
  // Between two micro-batches of a validation: saves where that is asked for, by `save`. False
  // where the run is to stop.
  bool may_go_on(SignalPoll& poll, const std::function<void()>& save);
  // To where the model is, in the dtype of its inputs. On a GPU the copies run beside what
  // computes, until `join_copies`.
  void bring(Batch& batch) const;
  void start_copies(Batch& batch) const;
  void join_copies() const;
  // Throws UserError on all ranks if their data for an evaluation or predictions differs. That of a
  // training is compared where its model is wrapped.
  void require_same_data(const std::string& fingerprint) const;
  void choose_verdict();
  bool unscale();
  // Counts a step whose gradients had overflowed. Throws where no loss scale helps.
  void count_skipped(double scale, const std::function<NonfiniteOrigin()>& origin);
  bool needs_norm() const;
  GradientNorm measure_gradients();
  void check_gradients(const std::string& loss_problem);
  // Both move the weights unless something is not finite, at this factor of the schedule.
  void update_now(double factor);
  void update_unwatched(double factor);
  // What the gradient of a micro-batch's loss begins with.
  at::Tensor seed_of(const at::Tensor& loss, const Batch& batch) const;
  void clip();
  // Calls `function`. Adds to an out-of-memory error what is held, and how to need less.
  template <class Function>
  auto explaining_memory(std::string_view activity, const Function& function) {
    try {
      return function();
    } catch (const std::exception& error) {
      explain_memory(error, activity);
      throw;
    }
  }
  // Throws that error for an out-of-memory one; returns for any other.
  void explain_memory(const std::exception& error, std::string_view activity);
  // Calls `pass` with the model. Adds to any other error of it what its micro-batch is like, and
  // where in the model `pass`, called again, fails.
  template <class Pass>
  auto explaining(const Work& work, const Pass& pass) {
    try {
      return pass(task_model_);
    } catch (const std::exception& error) {
      explain(error, work, pass);
      throw;
    }
  }
  // Throws an error that says more; returns where nothing more is known.
  void explain(const std::exception& error, const Work& work,
               const std::function<void(TaskModel& model)>& again);
  // Why values of a step are not finite, by the micro-batches of its passes.
  NonfiniteOrigin origin_of(std::span<const std::unique_ptr<Batch>> micro_batches);
  // Micro-batches of training samples, where the model is; those that can be read again.
  std::vector<std::unique_ptr<Batch>> read_again(
      std::span<const std::vector<int64_t>> samples) const;
  std::optional<int64_t> known_total_steps() const;

  std::shared_ptr<const config::Node> resolved_config_;
  TrainerConfig config_;
  TrainingConfig training_;
  Purpose purpose_;
  Ranks ranks_;
  at::Device device_;
  TaskModel task_model_;
  std::shared_ptr<Optimizer> optimizer_;
  std::shared_ptr<LrScheduler> lr_scheduler_;
  std::optional<SideStream> copies_;  ///< Copies micro-batches to a GPU.
  std::unique_ptr<BatchSource> training_data_;
  std::unique_ptr<BatchSource> validation_data_;
  std::vector<ValidationSet> validation_sets_;
  std::shared_ptr<DeferredInit> deferred_init_;
  std::function<void()> when_restored_;
  std::function<void(int64_t)> when_step_ends_;
  std::optional<GradScaler> scaler_;
  std::optional<LateVerdict> late_verdict_;  ///< Where all parameters lie on a device.
  std::vector<NamedParameter> parameters_;   ///< As this rank holds them, in the model's order.
  ParameterRules parameter_rules_;
  std::vector<std::string> group_summaries_;
  int64_t accumulation_ = 1;
  std::optional<int64_t> total_steps_;

  State state_;
  std::vector<std::unique_ptr<Batch>> micro_batches_;
  StepResult result_;
  TimeSplit time_;
  bool grad_norm_requested_ = false;
  bool is_in_step_ = false;
  StepFeed feed_;
  BrokenSamples broken_;                ///< In this process's training.
  BrokenSamples broken_in_validation_;  ///< In the last validation.
  std::vector<std::string> validation_names_;
  std::vector<NamedStateful> kept_state_;
  std::string early_end_;
  std::function<void()> exchange_weights_;
  double elapsed_before_ = 0;                 ///< Seconds that the run took before this process.
  std::optional<Clock::time_point> started_;  ///< When this process began to train.
  Clock::time_point step_began_;
};

}  // namespace phalanx
