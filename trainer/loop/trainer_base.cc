// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/trainer_base.h"

#include <fmt/format.h>

#include <stdexcept>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/part_names.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/use_model.h"
#include "trainer/metrics/console.h"
#include "trainer/step/loss_parts.h"
#include "trainer/tensors/error_text.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

std::vector<OptimizerPart> optimizers_of(TrainerSetup& setup) {
  const Components& one = setup.components;
  if (one.optimizer) {
    setup.optimizers = {{.rules = {.rules = std::move(setup.parameter_rules)},
                         .optimizer = one.optimizer,
                         .lr_scheduler = one.lr_scheduler}};
  }
  return std::move(setup.optimizers);
}

}  // namespace

TrainerBase::TrainerBase(TrainerSetup setup)
    : resolved_config_(std::move(setup.config)),
      config_(config::read<TrainerConfig>(*resolved_config_)),
      training_(training_config(*resolved_config_)),
      purpose_(setup.purpose),
      accumulation_(training_.accumulation(setup.ranks.world_size())),
      parts_({.task_model = TaskModel(setup.components.task, setup.components.model),
              .optimizers = optimizers_of(setup),
              .deferred_init = std::move(setup.deferred_init),
              .ranks = std::move(setup.ranks),
              .device = setup.device,
              .double_precision = config_.use_double_weight_precision}),
      transport_(parts_),
      errors_(parts_, state_, training_.batch_size, [this] { return memory_advice(); }),
      context_{parts_, state_, clock_.sums(), transport_, errors_},
      validation_(context_, training_.batch_size) {
  if (task_model().has_task()) task_model().task().check_model(model());
  if (purpose_ == Purpose::training) prepare_training();
  // The weights were drawn alike on all ranks; what follows (dropout) must differ.
  if (!ranks().is_first()) seed_rank();
}

const BatchSource& TrainerBase::training_data() const {
  if (feed_) return feed_->data();
  throw std::logic_error("a trainer that is not built to train has no training data");
}

BatchRequest TrainerBase::data_request(std::vector<std::filesystem::path> files) const {
  return {.batch_size = training_.batch_size,
          .rank = data_ranks().rank(),
          .world_size = data_ranks().world_size(),
          .seed = static_cast<uint64_t>(training_.seed),
          .gpu = device().is_cpu() ? std::nullopt : std::optional(device()),
          .files = std::move(files),
          .ranks = data_ranks()};
}

void TrainerBase::prepare_training() {
  const BatchRequest request = data_request();
  auto data = task_model().task().build_data(Phase::train, request);
  validation_.set_data(task_model().task().build_data(Phase::validate, request));
  if (data->batches_per_epoch() == 0) {
    throw UserError(
        fmt::format("the training data has {} samples an epoch, too few for one micro-batch of {} "
                    "(training.batch_size); use more data, a smaller batch or drop_last: false",
                    data->samples_per_epoch(), training_.batch_size));
  }
  if (Stateful* const own = task_model().task().kept_state()) keep_state("task", *own);
  keep_schedules();
  parts_.group_parameters();
  feed_.emplace(context_, training_, std::move(data));
  step_.emplace(context_,
                UpdateRules{.clip_grad_norm = training_.clip_grad_norm,
                            .clip_grad_value = training_.clip_grad_value,
                            .stop_on_nonfinite_loss = training_.stop_on_nonfinite_loss},
                feed_->data(), static_cast<StepHooks&>(*this));
  count_steps();
  if (total_steps_) return;
  for (const OptimizerPart& part : optimizers()) {
    if (!part.lr_scheduler->needs_total_steps()) continue;
    throw UserError(fmt::format(
        "the lr_scheduler needs to know the run's steps, which max_seconds alone does not tell: "
        "set {}.decay_steps, or one of training.max_steps, max_epochs, max_samples",
        part.schedule_field));
  }
}

void TrainerBase::keep_state(std::string name, Stateful& state) {
  kept_state_.push_back({.name = std::move(name), .state = &state});
  std::vector<std::string_view> names;
  for (const NamedStateful& kept : kept_state_) names.push_back(kept.name);
  require_part_names(names);
}

// Those that have a state, each as a part of its own.
void TrainerBase::keep_schedules() {
  for (const OptimizerPart& part : optimizers()) {
    Stateful* const own = part.lr_scheduler->kept_state();
    if (own == nullptr) continue;
    const config::Node* name = resolved_config_->find_path(part.schedule_field + ".name");
    kept_schedules_.emplace_back(name == nullptr ? "" : name->text, *own,
                                 [this](const std::string& line) {
                                   if (ranks().is_first()) {
                                     Console::standard().line("note: " + line);
                                   }
                                 });
    keep_state(part.name().empty() ? "lr_scheduler" : "lr_scheduler_" + part.name(),
               kept_schedules_.back());
  }
}

void TrainerBase::use_mixed_precision(at::ScalarType dtype,
                                      const std::optional<LossScaling>& scaling) {
  parts_.use_mixed_precision(dtype, scaling);
  if (scaling) state_.loss_scale = parts_.scaler()->current_scale();
}

void TrainerBase::seed_rank() const {
  seed_everything(static_cast<uint64_t>(training_.seed) + static_cast<uint64_t>(ranks().rank()) +
                      (static_cast<uint64_t>(state_.step) << 32),
                  device());
}

void TrainerBase::keep_global_batch_size(int64_t samples) {
  accumulation_ = training_.accumulation_keeping(samples, data_ranks().world_size());
  count_steps();
}

std::string TrainerBase::text_of(const std::exception& error) { return error_text(error); }

void TrainerBase::require_engine() const {
  if (ranks().is_single_rank() || task_model().has_engine()) return;
  throw UserError(fmt::format(
      "the trainer '{}' has no mixin that trains on {} ranks together (ParallelMixin): choose "
      "another one, or launcher.processes=1",
      config_.name, ranks().world_size()));
}

EpochSize TrainerBase::pass_over_data() const {
  const int64_t batches = training_data().batches_per_epoch();
  return {.samples = training_data().samples_per_epoch(),
          .steps = (batches + accumulation_ - 1) / accumulation_};
}

EpochSize TrainerBase::epoch() const {
  return training_.epoch_of(pass_over_data(), global_batch_size());
}

void TrainerBase::count_steps() {
  total_steps_ = training_.total_steps(pass_over_data(), global_batch_size());
  feed_->end_epochs_after(samples_an_epoch());
}

void TrainerBase::restore(const State& state) {
  const double initial_scale = state_.loss_scale;
  state_ = state;
  state_.validation_due = state.validation_due && can_validate();
  clock_.go_on_from(state.elapsed);
  restore_scale(state, initial_scale);
}

void TrainerBase::go_back(const State& saved) {
  const State now = state_;
  state_ = saved;
  state_.phase = now.phase;
  state_.epoch = now.epoch;
  state_.epoch_samples = now.epoch_samples;
  state_.samples = now.samples;
  state_.tokens = now.tokens;
  state_.elapsed = now.elapsed;
  state_.validation_due = false;  // it was of the time before
  restore_scale(saved, now.loss_scale);
}

void TrainerBase::restore_scale(const State& state, double initial_scale) {
  auto& scaler = parts_.scaler();
  if (!scaler) {
    state_.loss_scale = 0;
  } else if (state.loss_scale > 0) {
    scaler->restore(state.loss_scale, state.good_steps);
  } else {
    state_.loss_scale = initial_scale;
  }
}

bool TrainerBase::begin_epoch() {
  if (feed_->stops()) return false;
  state_.validation_due = false;  // It has been made, or nothing of this composition validates.
  // A run that was stopped within the validation of an epoch's last step has still to end the
  // epoch.
  if (finished() && !epoch_is_over()) return false;
  feed_->start_epoch();
  task_model().task().epoch_starts(model(), state_);
  return true;
}

bool TrainerBase::begin_step() {
  if (finished() || feed_->stops() || feed_->cuts_epoch()) {
    feed_->drop();
    settle();
    return false;
  }
  step_->ongoing().begin();
  ++state_.step;  // before anything can fail, so that an error names the step it happened in
  if (feed_->take(step_->ongoing(), accumulation_)) {
    StepResult& result = step_->ongoing().result;
    result.save_requested = std::exchange(owes_save_, false) || result.save_requested;
    return true;
  }
  --state_.step;
  step_->ongoing().is_running = false;
  settle();
  if (epoch_is_over() || feed_->stops()) return false;
  throw std::logic_error(fmt::format(
      "the training data ended after {} samples of an epoch, but its samples_per_epoch is {}",
      state_.epoch_samples, training_data().samples_per_epoch()));
}

void TrainerBase::bind_optimizers() {
  parts_.bind_optimizers(training_.stop_on_nonfinite_loss);
  // A guard decides before anything moves.
  if (step_->is_guarded()) parts_.late_verdict().reset();
}

bool TrainerBase::run_step() {
  step_->run_task(schedule_point());
  if (!step_->ongoing().is_undone) return true;
  undo_step();
  return false;
}

void TrainerBase::undo_step() {
  OngoingStep& step = step_->ongoing();
  if (!go_back_by_) {
    throw std::logic_error("a guard undoes a step, and no mixin says how the run goes back");
  }
  state_.samples += step.result.samples;
  state_.epoch_samples += step.result.samples;
  state_.tokens += step.result.tokens;
  step.is_running = false;
  owes_save_ = step.result.save_requested;
  step.micro_batches.clear();
  go_back_by_();
}

const StepResult& TrainerBase::end_step() {
  OngoingStep& step = step_->ongoing();
  StepResult& result = step.result;
  state_.samples += result.samples;
  state_.epoch_samples += result.samples;
  state_.tokens += result.tokens;
  // Where time is a limit, all ranks go by rank 0's clock.
  state_.elapsed = training_.max_seconds ? of_first_rank(elapsed_now()) : elapsed_now();
  result.step_seconds = Stopwatch::seconds_since(step.began);
  result.ends_epoch = epoch_is_over();
  result.ends_training =
      training_.limit_reached(state_) ||
      (result.ends_epoch && training_.max_epochs && state_.epoch + 1 >= *training_.max_epochs);
  step.is_running = false;
  if (when_step_ends_) when_step_ends_(state_.step);
  task_model().task().step_ended(model(), state_);
  return result;
}

void TrainerBase::end_validation(NamedValues& values) {
  state_.validation_due = false;
  if (purpose_ != Purpose::training) return;
  take_of_first_rank(values, ranks());
  for (const OptimizerPart& part : optimizers()) part.lr_scheduler->validated(values);
}

void TrainerBase::end_epoch() {
  ++state_.epoch;
  state_.epoch_samples = 0;
}

void TrainerBase::settle() {
  if (step_) step_->settle();
}

double TrainerBase::of_first_rank(double value) const {
  if (ranks().is_single_rank()) return value;
  const at::Tensor shared = tensors::empty({1}, at::kDouble);
  *shared.mutable_data_ptr<double>() = value;
  ranks().broadcast(shared);
  return *shared.const_data_ptr<double>();
}

NamedValues TrainerBase::global_losses(const StepResult& result) const {
  NamedValues values = result.losses();
  const size_t losses = values.size();
  for (const LoggedValue& logged : result.values) {
    values.emplace_back(logged.name, logged.sum.item().toDouble());
    values.emplace_back(logged.name, logged.weight);
  }
  sum_over_ranks(values, ranks());
  // Sums of values become means; their weights go.
  for (size_t i = 0; i < result.values.size(); ++i) {
    const double sum = values[losses + 2 * i].second;
    const double weight = values[losses + 2 * i + 1].second;
    values[losses + i] = {result.values[i].name, weight == 0 ? 0 : sum / weight};
  }
  values.resize(losses + result.values.size());
  return values;
}

std::string TrainerBase::broken_samples() const {
  const std::string training = feed_ ? feed_->broken().summary(ranks()) : "";
  const std::string validation = validation_.broken().summary(ranks());
  if (validation.empty()) return training;
  return training + (training.empty() ? "" : "; ") + "in a validation " + validation;
}

std::string TrainerBase::named_task() const {
  const config::Node* name = resolved_config_->find_path("task.name");
  return name == nullptr ? "the task" : "the task '" + name->text + "'";
}

void TrainerBase::require_files_are_read(bool are_given) const {
  if (!are_given || task_model().task().takes_files()) return;
  throw UserError(named_task() +
                  " reads no other data than what its config names: leave out the files, or set "
                  "the task's own fields (a task that reads BatchRequest::files says so by "
                  "takes_files, trainer/api/task.h)");
}

void TrainerBase::open_validation(std::vector<std::filesystem::path> files) {
  validation_.open(data_request(std::move(files)));
}

void TrainerBase::add_validation_set(const std::string& name, std::shared_ptr<AnyTask> task,
                                     std::vector<std::filesystem::path> files) {
  require_files_are_read(true);
  validation_.add_set(name, std::move(task), data_request(std::move(files)));
}

std::optional<NamedValues> TrainerBase::validation_means(std::optional<int64_t> max_batches,
                                                         const ValidationHooks& hooks) {
  settle();
  return validation_.means(max_batches, hooks, signals_of_validation());
}

std::optional<NamedValues> TrainerBase::text_score_means(int64_t samples,
                                                         const ValidationHooks& hooks) {
  settle();
  return validation_.text_score_means(samples, hooks, signals_of_validation());
}

void TrainerBase::rehearse_validation(int64_t texts) {
  settle();
  validation_.rehearse(texts, signals_of_validation());
}

void TrainerBase::use_model(const PassWork& work, const LoadModel& action) {
  phalanx::use_model(context_, work, action);
}

void TrainerBase::make_predictions(const PredictionRequest& request, const PredictionHooks& hooks) {
  phalanx::make_predictions(context_, named_task(), request, hooks);
}

std::string TrainerBase::sample() {
  std::string text;
  use_model({.activity = "sample"},
            [&](const TaskModel& used) { text = used.task().sample(used.model(), state_); });
  return text;
}

}  // namespace phalanx
