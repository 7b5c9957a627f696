// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/batch_source.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/screen_line.h"
#include "trainer/api/state.h"
#include "trainer/api/stateful.h"
#include "trainer/api/step_guard.h"
#include "trainer/api/step_result.h"
#include "trainer/api/task_model.h"
#include "trainer/loop/kept_schedule.h"
#include "trainer/loop/predictions.h"
#include "trainer/loop/trainer_setup.h"
#include "trainer/loop/training_clock.h"
#include "trainer/loop/training_config.h"
#include "trainer/loop/training_feed.h"
#include "trainer/loop/validation.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/precision/grad_scaler.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/batch_transport.h"
#include "trainer/step/optimizer_part.h"
#include "trainer/step/pass_context.h"
#include "trainer/step/pass_errors.h"
#include "trainer/step/schedule_point.h"
#include "trainer/step/step_hooks.h"
#include "trainer/step/step_parts.h"
#include "trainer/step/time_split.h"
#include "trainer/step/train_step.h"

namespace phalanx {

/// All of a trainer that does not depend on its composition: the verbs that the loop in
/// trainer.h is told in, and what mixins may ask and do.
class TrainerBase : public AnyTrainer, protected StepHooks {
 public:
  /// Builds the data, binds the optimizer and checks that everything fits together. Writes
  /// nothing. Throws UserError.
  explicit TrainerBase(TrainerSetup setup);
  TrainerBase(const TrainerBase&) = delete;
  TrainerBase& operator=(const TrainerBase&) = delete;

  // What mixins may ask.
  const State& state() const final { return state_; }
  const TrainerConfig& config() const { return config_; }
  const TrainingConfig& training() const { return training_; }
  const config::Node& resolved_config() const { return *resolved_config_; }
  const Ranks& ranks() const { return parts_.ranks(); }
  /// Those among which samples are dealt and gradients averaged (StepParts::data_ranks).
  const Ranks& data_ranks() const { return parts_.data_ranks(); }
  /// How many of these compute (StepParts::shares).
  int64_t shares() const { return parts_.shares(); }
  /// Where this rank computes: batches are moved there, and the model lies there.
  at::Device device() const { return parts_.device(); }
  const TaskModel& task_model() const { return parts_.task_model(); }
  ModelBase& model() const { return parts_.model(); }
  Purpose purpose() const { return purpose_; }
  /// One, or several of a config's `optimizers`; only of a trainer that was built to train.
  std::span<const OptimizerPart> optimizers() const { return parts_.optimizers(); }
  /// The states of all of them. Throws std::logic_error in a trainer that was not built to train.
  std::vector<ShardedTensorView> optimizer_state() const { return parts_.optimizer_state(); }
  const BatchSource& training_data() const;
  const BatchSource* validation_data() const { return validation_.data(); }
  const std::vector<ValidationSet>& validation_sets() const { return validation_.sets(); }
  /// Whether there is any data to validate on.
  bool can_validate() const { return validation_.has_data(); }
  TimeSplit time_split() const { return clock_.split(); }
  /// Seconds of training by now: state().elapsed, and the time since then.
  double elapsed_now() const { return clock_.elapsed(); }
  /// Samples an optimizer step over all ranks.
  int64_t global_batch_size() const { return training_.batch_size * accumulation_ * shares(); }
  /// Steps of a whole epoch.
  int64_t steps_per_epoch() const { return epoch().steps; }
  /// Epochs that so many steps need, the last of which may be a part.
  int64_t epochs_of(int64_t steps) const;
  /// Where the schedules are in the present step.
  SchedulePoint schedule_point() const;
  /// Samples of an epoch over all ranks: those of the training data, unless
  /// training.max_steps_per_epoch ends it before.
  int64_t samples_an_epoch() const { return epoch().samples; }
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
  /// on_setup. Throws std::logic_error for a name that a part cannot have, and one that is taken.
  void keep_state(std::string name, Stateful& state);
  /// Has a guard, which outlives the training, judge each step before its update; from on_setup.
  /// The run then waits for the loss and the gradient norm of each step, also on a device.
  void guard_steps(StepGuard& guard) { step_->guard_by(guard); }
  /// How the run goes back where a guard undoes a step: `action` loads the model, the optimizer and
  /// the kept states of a checkpoint and calls `go_back`. From on_restore.
  void go_back_by(std::function<void()> action) { go_back_by_ = std::move(action); }
  /// Goes back to the step of a checkpoint. The place in the data, what was consumed of it, and the
  /// time stay: the samples since then are left out.
  void go_back(const State& saved);
  /// The forward pass in lower precision, and with `scaling` a loss scale; from on_setup, before
  /// the model is wrapped.
  void use_mixed_precision(at::ScalarType dtype, const std::optional<LossScaling>& scaling);
  /// The initial values that the model still waits for: who wraps it fills them. Taken once.
  std::shared_ptr<DeferredInit> take_deferred_init() { return parts_.take_deferred_init(); }
  /// Gives the model its values, on this rank's device and in the run's precision.
  void initialize_model() { parts_.initialize_model(); }
  /// Puts a wrapped task model in the place of the plain one; from on_setup.
  void wrap(TaskModel wrapped) { parts_.wrap(std::move(wrapped)); }
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
  void request_grad_norm() { step_->ongoing().is_norm_requested = true; }
  /// Measure the task's metrics in this step, for step_metrics; from on_step_start. All ranks call
  /// it, or none.
  void request_metrics() { step_->ongoing().are_metrics_requested = true; }

  /// Rank 0's value, on every rank, where one of them must decide. Every rank calls it, or none.
  double of_first_rank(double value) const;
  /// The step's losses over all ranks, the sum first, and the values that the task has logged in
  /// it. Every rank calls it, or none.
  NamedValues global_losses(const StepResult& result) const;
  /// The step's metrics over all ranks, where they were requested; those that nothing was fed are
  /// left out. Waits for the device. Every rank calls it, or none.
  NamedValues step_metrics() const { return step_->ongoing().metrics.values(ranks()); }
  /// Adds a set of validation data: these files, read as the task's own validation data. `task` is
  /// one more of the run's config. Throws UserError. Every rank calls it.
  void add_validation_set(const std::string& name, std::shared_ptr<AnyTask> task,
                          std::vector<std::filesystem::path> files);
  /// See Validation::means: nothing where a signal to stop has ended it early, as it does between
  /// the steps of a training.
  std::optional<NamedValues> validation_means(std::optional<int64_t> max_batches,
                                              const ValidationHooks& hooks = {});
  /// See Validation::text_score_means; nothing as above.
  std::optional<NamedValues> text_score_means(int64_t samples, const ValidationHooks& hooks = {});
  /// Validates one micro-batch, and writes texts for so many samples: what
  /// goes wrong with a validation must not come after hours of training. Throws as both above.
  void rehearse_validation(int64_t texts);
  /// The values that a validation gives, by the rehearsal; empty where it has found none.
  const std::vector<std::string>& validation_names() const { return validation_.names(); }
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
  /// Gives the optimizers what this rank holds of the model.
  void bind_optimizers();
  /// Takes a set of an evaluation as the validation data. Throws UserError if there is none.
  void open_validation(std::vector<std::filesystem::path> files);
  /// See validate_with; empty: validations measure the model's own weights.
  const std::function<void()>& exchange_weights() const { return exchange_weights_; }
  /// See Validation.
  void require_text_data(int64_t texts) const { validation_.require_text_data(texts); }
  /// From here to `end_validation` a checkpoint says that this step is still to be validated.
  void begin_validation() { state_.validation_due = answers_signals(); }
  /// Ends it with its values, which become rank 0's on all ranks: a value that differs in its last
  /// bit must not part the ranks. In an evaluation they stay.
  void end_validation(NamedValues& values);
  /// See loop/use_model.h.
  void use_model(const PassWork& work, const LoadModel& action);

  /// Makes predictions, batch by batch.
  void make_predictions(const PredictionRequest& request, const PredictionHooks& hooks);

  /// From here on time counts as this process's training.
  void begin_training() { clock_.begin(); }
  bool begin_epoch();
  bool begin_step();
  /// Has the task run its step, with the hooks that StepHooks calls. False where a guard has undone
  /// it, and the run has gone back to a checkpoint.
  bool run_step();
  const StepResult& end_step();
  /// All its samples are consumed; a limit or a signal can end the steps before that.
  bool epoch_is_over() const { return feed_->epoch_is_over(); }
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
  BatchRequest data_request(std::vector<std::filesystem::path> files = {}) const;
  void prepare_training();
  void keep_schedules();
  EpochSize pass_over_data() const;
  EpochSize epoch() const;
  // What follows from the number of micro-batches a step.
  void count_steps();
  void undo_step();
  // Has the loss scale go on from a state's.
  void restore_scale(const State& state, double initial_scale);
  // "the task 'copying'", for errors.
  std::string named_task() const;
  // Whether a signal may end a validation now, or save within it: between the steps of a training.
  bool answers_signals() const { return feed_ && !step_->ongoing().is_running; }
  SignalAgreement* signals_of_validation() {
    return answers_signals() ? &feed_->signals() : nullptr;
  }

  std::shared_ptr<const config::Node> resolved_config_;
  TrainerConfig config_;
  TrainingConfig training_;
  Purpose purpose_;
  std::function<void()> when_restored_;
  std::function<void(int64_t)> when_step_ends_;
  int64_t accumulation_ = 1;
  std::optional<int64_t> total_steps_;
  std::vector<NamedStateful> kept_state_;
  std::deque<KeptSchedule> kept_schedules_;  ///< Of schedules that have a state.
  std::string early_end_;
  std::function<void()> exchange_weights_;
  std::function<void()> go_back_by_;
  bool owes_save_ = false;  ///< A step that was undone was asked for a checkpoint.
  State state_;
  TrainingClock clock_;
  StepParts parts_;
  // Micro-batches lie on the streams of what stands above them here: they are freed first.
  BatchTransport transport_;
  PassErrors errors_;
  PassContext context_;
  Validation validation_;
  std::optional<TrainingFeed> feed_;  ///< None where nothing is trained, as below.
  std::optional<TrainStep> step_;
};

}  // namespace phalanx
