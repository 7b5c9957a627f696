// SPDX-License-Identifier: Apache-2.0
// What is done with the model beside training: validations, predictions and samples.

#include <memory>
#include <utility>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/loop/use_model.h"
#include "trainer/step/loss_parts.h"

namespace phalanx {

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

void TrainerBase::end_validation(NamedValues& values) {
  state_.validation_due = false;
  if (purpose_ != Purpose::training) return;
  take_of_first_rank(values, ranks());
  for (const OptimizerPart& part : optimizers()) part.lr_scheduler->validated(values);
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
