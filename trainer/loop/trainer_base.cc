// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/trainer_base.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/loss_parts.h"
#include "trainer/loop/out_of_memory.h"
#include "trainer/loop/stopwatch.h"
#include "trainer/tensors/error_text.h"
#include "trainer/tensors/random.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// Losses are summed, weighed and scaled in single precision at least.
at::Tensor at_least_single(const at::Tensor& value) {
  return at::isReducedFloatingType(value.scalar_type()) ? value.to(at::kFloat) : value;
}

at::Tensor weighed(const at::Tensor& value, double weight) {
  return weight == 1 ? value : value.mul(weight);
}

// What a micro-batch's mean adds to the step's. One without a share adds nothing, whatever it is:
// not a number times 0 would be none either.
at::Tensor part_of_mean(const at::Tensor& mean, double share) {
  const at::Tensor value = at_least_single(mean.detach());
  return share == 0 ? tensors::zeros(value.sizes(), value.options()) : weighed(value, share);
}

// What a batch's inputs are cast to; none: nothing. Weights in double precision take no others.
std::optional<at::ScalarType> input_dtype(const TaskModel& model, const TrainerConfig& config) {
  if (const auto dtype = model.input_dtype()) return dtype;
  return config.use_double_weight_precision ? std::optional(at::kDouble) : std::nullopt;
}

// Before the first step, and where a trained model is used, there is no step to name.
std::string place_of(int64_t step, std::string_view activity) {
  return step == 0 ? std::string(activity) : fmt::format("step {}, {}", step, activity);
}

}  // namespace

TrainerBase::TrainerBase(TrainerSetup setup)
    : resolved_config_(std::move(setup.config)),
      config_(config::read<TrainerConfig>(*resolved_config_)),
      training_(training_config(*resolved_config_)),
      purpose_(setup.purpose),
      ranks_(std::move(setup.ranks)),
      device_(setup.device),
      task_model_(setup.components.task, setup.components.model),
      optimizer_(setup.components.optimizer),
      lr_scheduler_(setup.components.lr_scheduler),
      deferred_init_(std::move(setup.deferred_init)),
      parameter_rules_(std::move(setup.parameter_rules)),
      accumulation_(training_.accumulation(ranks_.world_size())) {
  // Several ranks may each hold a part only: what wraps the model fills it.
  if (ranks_.is_single_rank() || !deferred_init_) initialize_model();
  if (task_model_.has_task()) task_model_.task().check_model(model());
  if (!device_.is_cpu()) copies_.emplace(device_);
  if (purpose_ == Purpose::training) prepare_training();
  // The weights were drawn alike on all ranks; what follows (dropout) must differ.
  if (!ranks_.is_first()) seed_rank();
}

Optimizer& TrainerBase::optimizer() const {
  if (!optimizer_) throw std::logic_error("a trainer that is not built to train has no optimizer");
  return *optimizer_;
}

const BatchSource& TrainerBase::training_data() const {
  if (training_data_) return *training_data_;
  throw std::logic_error("a trainer that is not built to train has no training data");
}

BatchRequest TrainerBase::data_request() const {
  return {.batch_size = training_.batch_size,
          .rank = ranks_.rank(),
          .world_size = ranks_.world_size(),
          .seed = static_cast<uint64_t>(training_.seed),
          .gpu = device_.is_cpu() ? std::nullopt : std::optional(device_),
          .files = {},
          .ranks = ranks_};
}

void TrainerBase::prepare_training() {
  const BatchRequest request = data_request();
  training_data_ = task_model_.task().build_data(Phase::train, request);
  validation_data_ = task_model_.task().build_data(Phase::validate, request);
  if (training_data_->batches_per_epoch() == 0) {
    throw UserError(
        fmt::format("the training data has {} samples an epoch, too few for one micro-batch of {} "
                    "(training.batch_size); use more data, a smaller batch or drop_last: false",
                    training_data_->samples_per_epoch(), training_.batch_size));
  }
  if (Stateful* const own = task_model_.task().kept_state()) keep_state("task", *own);
  if (Stateful* const own = lr_scheduler_->kept_state()) keep_state("lr_scheduler", *own);
  group_summaries_ = describe_groups(model(), parameter_rules_);
  total_steps_ = known_total_steps();
  if (lr_scheduler_->needs_total_steps() && !total_steps_) {
    throw UserError(
        "the lr_scheduler needs to know the run's steps, which max_seconds alone does not tell: "
        "set lr_scheduler.decay_steps, or one of training.max_steps, max_epochs, max_samples");
  }
}

void TrainerBase::initialize_model() {
  if (const auto deferred = take_deferred_init()) deferred->fill();
  if (config_.use_double_weight_precision) to_double(model());
  move_to(model(), device_);
}

void TrainerBase::use_mixed_precision(at::ScalarType dtype,
                                      const std::optional<LossScaling>& scaling) {
  task_model_ = task_model_.with_autocast(AutocastTo{.device = device_.type(), .dtype = dtype});
  if (!scaling) return;
  scaler_.emplace(*scaling);
  state_.loss_scale = scaler_->current_scale();
}

void TrainerBase::seed_rank() const {
  seed_everything(static_cast<uint64_t>(training_.seed) + static_cast<uint64_t>(ranks_.rank()) +
                      (static_cast<uint64_t>(state_.step) << 32),
                  device_);
}

void TrainerBase::keep_global_batch_size(int64_t samples) {
  accumulation_ = training_.accumulation_keeping(samples, ranks_.world_size());
  total_steps_ = known_total_steps();
}

std::string TrainerBase::text_of(const std::exception& error) { return error_text(error); }

void TrainerBase::require_engine() const {
  if (ranks_.is_single_rank() || task_model_.has_engine()) return;
  throw UserError(fmt::format(
      "the trainer '{}' has no mixin that trains on {} ranks together (ParallelMixin): choose "
      "another one, or launcher.processes=1",
      config_.name, ranks_.world_size()));
}

void TrainerBase::bind_optimizer() {
  // In the model's order: Python's clip_grad_norm_(model.parameters()) sums in that one.
  for (const auto& parameter : named_parameters(model())) {
    if (parameter.tensor.requires_grad()) parameters_.push_back(task_model_.local(parameter));
  }
  auto groups = parameter_groups(model(), parameter_rules_);
  for (auto& group : groups) {
    for (auto& parameter : group.parameters) parameter = task_model_.local(parameter);
  }
  optimizer_->join(ranks_);
  optimizer_->bind(std::move(groups));
  choose_verdict();
}

std::optional<int64_t> TrainerBase::known_total_steps() const {
  const int64_t batches = training_data_->batches_per_epoch();
  return training_.total_steps({.samples = training_data_->samples_per_epoch(),
                                .steps = (batches + accumulation_ - 1) / accumulation_},
                               global_batch_size());
}

double TrainerBase::elapsed_now() const {
  return elapsed_before_ + (started_ ? Stopwatch::seconds_since(*started_) : 0.0);
}

TimeSplit TrainerBase::time_split() const {
  TimeSplit split = time_;
  if (started_) split.total = Stopwatch::seconds_since(*started_);
  return split;
}

void TrainerBase::restore(const State& state) {
  const double initial_scale = state_.loss_scale;
  state_ = state;
  state_.validation_due = state.validation_due && can_validate();
  elapsed_before_ = state.elapsed;
  if (!scaler_) {
    state_.loss_scale = 0;
  } else if (state.loss_scale > 0) {
    scaler_->restore(state.loss_scale, state.good_steps);
  } else {
    state_.loss_scale = initial_scale;
  }
}

bool TrainerBase::begin_epoch() {
  if (feed_.stops(ranks_)) return false;
  state_.validation_due = false;  // It has been made, or nothing of this composition validates.
  // A run that was stopped within the validation of an epoch's last step has still to end the
  // epoch.
  if (finished() && !epoch_is_over()) return false;
  training_data_->start_epoch(state_.epoch, state_.epoch_samples);
  task_model_.task().epoch_starts(model(), state_);
  return true;
}

std::unique_ptr<Batch> TrainerBase::next_batch(BatchSource& data) const {
  auto batch = data.next();
  if (batch) bring(*batch);
  return batch;
}

void TrainerBase::bring(Batch& batch) const {
  move_to(batch, device_);
  if (const auto dtype = input_dtype(task_model_, config_)) cast_inputs(batch, *dtype);
}

// The memory is that of the stream that computes with it: an allocator gives it to others in that
// stream's order. So the copies are joined before a batch is used or freed.
void TrainerBase::start_copies(Batch& batch) const {
  if (!copies_) return;
  std::vector<std::pair<at::Tensor*, at::Tensor>> places;
  for (at::Tensor* const tensor : batch.tensors()) {
    if (!tensor->defined() || tensor->device() == device_) continue;
    places.emplace_back(tensor, at::empty_like(*tensor, tensor->options().device(device_)));
  }
  copies_->run_after_computing([&] {
    for (auto& [tensor, place] : places) {
      place.copy_(*tensor, /*non_blocking=*/true);
      *tensor = std::move(place);
    }
  });
}

void TrainerBase::join_copies() const {
  if (copies_) copies_->join();
}

void TrainerBase::prepare_step(int64_t step) {
  const Stopwatch stopwatch(result_.data_seconds);
  enter(step, "data");
  feed_.prepare(ranks_, accumulation_, [this] {
    auto batch = training_data_->next();
    if (batch) start_copies(*batch);
    return batch;
  });
}

void TrainerBase::leave_out_broken(int64_t on_all_ranks) {
  if (on_all_ranks == 0) return;
  for (const auto& batch : micro_batches_) {
    result_.broken.insert(result_.broken.end(), batch->broken.begin(), batch->broken.end());
  }
  broken_.add(result_.broken, on_all_ranks);
  require_few(broken_, *training_data_);
  if (result_.tokens == 0) {
    throw std::runtime_error("no sample of this step can be read: " + broken_.summary(ranks_));
  }
}

void TrainerBase::require_few(const BrokenSamples& broken, const BatchSource& data) const {
  if (broken.count() <= data.max_broken()) return;
  throw std::runtime_error(fmt::format("broken samples: {}, while max_broken allows {}: {}",
                                       broken.count(), data.max_broken(), broken.summary(ranks_)));
}

std::string TrainerBase::broken_samples() const {
  const std::string training = broken_.summary(ranks_);
  const std::string validation = broken_in_validation_.summary(ranks_);
  if (validation.empty()) return training;
  return training + (training.empty() ? "" : "; ") + "in a validation " + validation;
}

void TrainerBase::bring_micro_batches() {
  const Stopwatch stopwatch(result_.data_seconds);
  enter("data");
  const auto dtype = input_dtype(task_model_, config_);
  if (!dtype) return;
  for (const auto& batch : micro_batches_) cast_inputs(*batch, *dtype);
}

bool TrainerBase::step_follows() const {
  State after = state_;
  after.samples += result_.samples;
  after.epoch_samples += result_.samples;
  return !training_.limit_reached(after) &&
         after.epoch_samples < training_data_->samples_per_epoch();
}

bool TrainerBase::begin_step() {
  if (finished() || feed_.stops(ranks_)) {
    join_copies();
    feed_.drop();
    settle();
    return false;
  }
  step_began_ = Clock::now();
  result_.loss_parts.clear();  // their memory serves every step
  result_ = {.loss_parts = std::move(result_.loss_parts)};
  grad_norm_requested_ = false;
  is_in_step_ = true;
  ++state_.step;  // before anything can fail, so that an error names the step it happened in
  enter("data");
  if (!feed_.is_prepared()) prepare_step(state_.step);
  join_copies();  // before the step is used or dropped, or the next one's copies begin
  auto [micro_batches, counts] = feed_.take(ranks_);
  micro_batches_ = std::move(micro_batches);
  result_.samples = counts.samples;
  result_.tokens = counts.tokens;
  const bool stops = feed_.stops(ranks_);
  if (!micro_batches_.empty() && !stops) {
    result_.save_requested = feed_.take_save_request();
    leave_out_broken(counts.broken);
    if (result_.tokens == 0) {
      throw std::logic_error(
          "the task's batches count no tokens: set Batch::tokens to the number of terms that the "
          "loss is a mean over");
    }
    bring_micro_batches();
    if (step_follows()) prepare_step(state_.step + 1);
    time_.data += result_.data_seconds;
    return true;
  }
  --state_.step;
  is_in_step_ = false;
  settle();
  if (epoch_is_over() || stops) return false;
  throw std::logic_error(fmt::format(
      "the training data ended after {} samples of an epoch, but its samples_per_epoch is {}",
      state_.epoch_samples, training_data_->samples_per_epoch()));
}

void TrainerBase::explain_memory(const std::exception& error, std::string_view activity) {
  if (!is_out_of_memory(error)) return;
  std::vector<std::string> advice;
  if (training_.batch_size > 1) {
    advice.emplace_back(
        "a smaller training.batch_size with more gradient_accumulation_steps (activations)");
  }
  std::ranges::move(memory_advice(), std::back_inserter(advice));
  advice.emplace_back("more ranks that share the model, or a smaller one");
  throw std::runtime_error(explain_out_of_memory(error, place_of(state_.step, activity),
                                                 task_model_, optimizer_.get(), advice));
}

void TrainerBase::explain(const std::exception& error, const Work& work,
                          const std::function<void(TaskModel& model)>& again) {
  explain_memory(error, work.activity);
  if (work.batch == nullptr || explains_itself(error)) return;
  const ExplainedFault explained = explain_error(error, place_of(state_.step, work.activity),
                                                 {.task_model = task_model_,
                                                  .batch = *work.batch,
                                                  .samples = *work.samples,
                                                  .device = device_,
                                                  .again = again});
  if (explained.is_of_data) throw UserError(explained.text);
  if (explained.text != error_text(error)) throw std::runtime_error(explained.text);
}

Loss TrainerBase::forward(const Batch& batch) {
  const Stopwatch stopwatch(time_.forward_backward);
  enter("forward");
  // Gradients of the step's last micro-batch are reduced, with those before in them.
  const bool synchronize = &batch == micro_batches_.back().get();
  return explaining({.activity = "forward", .batch = &batch, .samples = training_data_.get()},
                    [&](TaskModel& model) { return model.forward(batch, state_, synchronize); });
}

void TrainerBase::backward(const Loss& loss, const Batch& batch) {
  const Stopwatch stopwatch(time_.forward_backward);
  enter("backward");
  // A step's loss is the mean over all its tokens, so a micro-batch counts by its share of them.
  const auto tokens = static_cast<double>(result_.tokens);
  const double share = static_cast<double>(batch.counted_tokens()) / tokens;

  const at::NoGradGuard no_grad;
  if (result_.loss_parts.empty()) {
    for (const auto& [name, value] : loss.parts()) {
      result_.loss_parts.emplace_back(name, part_of_mean(value, share));
    }
  } else {
    require_same_parts(result_.loss_parts, loss);
    for (size_t i = 0; i < loss.parts().size(); ++i) {
      result_.loss_parts[i].second += part_of_mean(loss.parts()[i].second, share);
    }
  }
  const at::AutoGradMode with_grad(true);
  // The ranks' gradients become their mean, not their sum.
  const auto of_rank = static_cast<double>(batch.counted_tokens() * ranks_.world_size()) / tokens;
  const at::Tensor total = weighed(at_least_single(loss.total()), of_rank);
  const at::Tensor seed = seed_of(total, batch);
  const at::Tensor scaled = scaler_ ? scaler_->scale(total) : total;
  try {
    scaled.backward(seed);
  } catch (const std::exception& error) {
    explain(error, {.activity = "backward", .batch = &batch, .samples = training_data_.get()},
            /*again=*/{});
    throw;
  }
  task_model_.end_backward();
}

// One, or NaN for a loss of this rank that is not finite: the gradients are then NaN on all ranks,
// and each of them knows by their norm, before anything moves, without another exchange.
at::Tensor TrainerBase::seed_of(const at::Tensor& loss, const Batch& batch) const {
  const bool is_told = training_.stop_on_nonfinite_loss && !scaler_ && !ranks_.is_single_rank();
  if (!is_told || batch.counted_tokens() == 0) return {};
  // It looks for the first NaN of a backward pass: this one would be it.
  if (torch::autograd::AnomalyMode::is_enabled()) return {};
  const at::NoGradGuard no_grad;
  return loss.detach().mul(0).add(1);
}

const StepResult& TrainerBase::end_step() {
  state_.samples += result_.samples;
  state_.epoch_samples += result_.samples;
  state_.tokens += result_.tokens;
  // Where time is a limit, all ranks go by rank 0's clock.
  state_.elapsed = training_.max_seconds ? of_first_rank(elapsed_now()) : elapsed_now();
  result_.step_seconds = Stopwatch::seconds_since(step_began_);
  result_.ends_epoch = epoch_is_over();
  result_.ends_training =
      training_.limit_reached(state_) ||
      (result_.ends_epoch && training_.max_epochs && state_.epoch + 1 >= *training_.max_epochs);
  is_in_step_ = false;
  if (when_step_ends_) when_step_ends_(state_.step);
  task_model_.task().step_ended(model(), state_);
  return result_;
}

bool TrainerBase::epoch_is_over() const {
  return state_.epoch_samples >= training_data_->samples_per_epoch();
}

void TrainerBase::end_epoch() {
  ++state_.epoch;
  state_.epoch_samples = 0;
}

void TrainerBase::enter(int64_t step, std::string_view activity) const {
  ranks_.set_activity(fmt::format("step {}, {}", step, activity));
}

double TrainerBase::of_first_rank(double value) const {
  if (ranks_.is_single_rank()) return value;
  const at::Tensor shared = tensors::empty({1}, at::kDouble);
  *shared.mutable_data_ptr<double>() = value;
  ranks_.broadcast(shared);
  return *shared.const_data_ptr<double>();
}

NamedValues TrainerBase::global_losses(const StepResult& result) const {
  NamedValues losses = result.losses();
  sum_over_ranks(losses, ranks_);
  return losses;
}

}  // namespace phalanx
