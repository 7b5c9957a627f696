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
#include "trainer/loop/accumulation.h"
#include "trainer/metrics/console.h"
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
      accumulation_(
          accumulation_of(*resolved_config_,
                          setup.data_ranks.value_or(setup.ranks).world_size() - setup.idle_ranks)),
      parts_({.task_model = TaskModel(setup.components.task, setup.components.model),
              .optimizers = optimizers_of(setup),
              .deferred_init = std::move(setup.deferred_init),
              .ranks = std::move(setup.ranks),
              .data_ranks = std::move(setup.data_ranks),
              .idle_ranks = setup.idle_ranks,
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
          .rank = parts_.share(),
          .world_size = shares(),
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
  accumulation_ = training_.accumulation_keeping(samples, shares());
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

void TrainerBase::bind_optimizers() {
  parts_.bind_optimizers(training_.stop_on_nonfinite_loss);
  // A guard decides before anything moves.
  if (step_->is_guarded()) parts_.late_verdict().reset();
}

double TrainerBase::of_first_rank(double value) const {
  if (ranks().is_single_rank()) return value;
  const at::Tensor shared = tensors::empty({1}, at::kDouble);
  *shared.mutable_data_ptr<double>() = value;
  ranks().broadcast(shared);
  return *shared.const_data_ptr<double>();
}

}  // namespace phalanx
