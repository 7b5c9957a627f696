// SPDX-License-Identifier: Apache-2.0
// What a trainer computes without gradients: validations, texts, predictions.

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/base/stop_wait.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"
#include "trainer/io/files_of_data.h"
#include "trainer/loop/prediction_rounds.h"
#include "trainer/loop/signal_poll.h"
#include "trainer/loop/stopwatch.h"
#include "trainer/loop/text_score_sums.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/loop/validation_sums.h"
#include "trainer/ranks/collectives/agreement.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

constexpr const char* kValidationsBatch = "this micro-batch of the validation";
constexpr const char* kNoData = "the task has no validation data";
constexpr const char* kTexts = "the texts of a validation";

// " 'copying'", behind "the task".
std::string quoted_name(const config::Node& resolved) {
  const config::Node* name = resolved.find_path("task.name");
  return name == nullptr ? "" : " '" + name->text + "'";
}

}  // namespace

void TrainerBase::require_files_are_read(bool are_given) const {
  if (!are_given || task_model_.task().takes_files()) return;
  throw UserError(fmt::format(
      "the task{} reads no other data than what its config names: leave out the files, or set the "
      "task's own fields (a task that reads BatchRequest::files says so by takes_files, "
      "trainer/api/task.h)",
      quoted_name(*resolved_config_)));
}

void TrainerBase::open_validation(std::vector<std::filesystem::path> files) {
  if (!files.empty()) validation_sets_.clear();
  BatchRequest request = data_request();
  request.files = std::move(files);
  validation_data_ = task_model_.task().build_data(Phase::validate, request);
  if (!can_validate()) throw UserError(kNoData);
  if (validation_data_) require_same_data(validation_data_->fingerprint());
}

void TrainerBase::add_validation_set(const std::string& name, std::shared_ptr<AnyTask> task,
                                     std::vector<std::filesystem::path> files) {
  require_files_are_read(true);
  task->check_model(model());
  BatchRequest request = data_request();
  request.files = std::move(files);
  ValidationSet set{.name = name, .task = std::move(task), .data = nullptr};
  try {
    set.data = set.task->build_data(Phase::validate, request);
  } catch (const UserError& error) {
    throw UserError(fmt::format("validation.sets.{}: {}", name, error.what()));
  }
  if (!set.data) throw UserError(fmt::format("validation.sets.{}: {}", name, kNoData));
  require_same_data(set.data->fingerprint());
  validation_sets_.push_back(std::move(set));
}

void TrainerBase::require_same_data(const std::string& fingerprint) const {
  if (!ranks_.is_single_rank())
    require_agreement(ranks_, {{"the data", fingerprint, files_of_data}});
}

void TrainerBase::use_model(const Work& work, const LoadModel& action) {
  const RngGuard random_numbers(device_);
  const EvaluationMode evaluation(model());
  const at::NoGradGuard no_grad;
  explaining(work, [&](TaskModel& model) { model.use([&] { action(model); }); });
}

bool TrainerBase::may_go_on(SignalPoll& poll, const std::function<void()>& save) {
  if (!answers_signals()) return true;
  poll.look();
  SignalAgreement& signals = feed_.signals();
  if (signals.stops(ranks_)) return false;
  if (save && signals.take_save_request()) save();
  return true;
}

std::optional<NamedValues> TrainerBase::text_score_means(int64_t samples,
                                                         const ValidationHooks& hooks) {
  if (!validation_data_) {
    throw UserError(
        "validation.generate writes texts for the task's own validation data, and it "
        "has none");
  }
  settle();
  const Stopwatch stopwatch(time_.validation);
  const StopWait wait(kValidationsBatch);
  State state = state_;
  state.phase = Phase::validate;
  TextScoreSums sums;
  const int64_t of_round = training_.batch_size * ranks_.world_size();
  const int64_t rounds = (samples + of_round - 1) / of_round;
  if (hooks.count.begin) {
    hooks.count.begin(std::min(rounds, validation_data_->batches_per_epoch()), "batches of texts");
  }
  SignalPoll poll(ranks_, feed_.signals());
  validation_data_->start_first(samples);
  for (int64_t round = 0; round < rounds; ++round) {
    if (!may_go_on(poll, hooks.save)) return std::nullopt;
    enter(kTexts);
    const auto batch = next_batch(*validation_data_);
    if (!batch) break;
    use_model({.activity = kTexts, .batch = batch.get(), .samples = validation_data_.get()},
              [&](const TaskModel& used) {
                sums.add(*batch, used.task().text_scores(used.model(), *batch, state));
              });
    if (hooks.count.one_done) hooks.count.one_done();
  }
  return sums.means(ranks_);
}

void TrainerBase::make_predictions(const PredictionRequest& request, const PredictionHooks& hooks) {
  const auto source = task_model_.task().prediction_data({.files = request.files, .ranks = ranks_});
  if (!source) {
    throw UserError(fmt::format(
        "the task{} makes no predictions (a task that does overrides prediction_data and predict, "
        "trainer/api/task.h)",
        quoted_name(*resolved_config_)));
  }
  require_same_data(source->fingerprint());
  State state = state_;
  state.phase = Phase::predict;
  enter("prediction");
  const auto compute = [&](Batch& batch, bool is_asked_for) {
    bring(batch);
    if (is_asked_for && hooks.before) hooks.before(state, batch);
    Predictions predictions;
    use_model({.activity = "prediction", .batch = &batch, .samples = source.get()},
              [&](const TaskModel& used) {
                predictions = used.task().predictions(used.model(), batch, state);
              });
    if (is_asked_for && hooks.after) hooks.after(state, batch, predictions);
    return predictions;
  };
  predict_in_rounds(*source, request, ranks_, compute);
}

std::string TrainerBase::sample() {
  std::string text;
  use_model({.activity = "sample"},
            [&](const TaskModel& used) { text = used.task().sample(used.model(), state_); });
  return text;
}

void TrainerBase::end_validation(const NamedValues& values) {
  state_.validation_due = false;
  if (purpose_ == Purpose::training) lr_scheduler_->validated(values);
}

std::vector<TrainerBase::Measured> TrainerBase::all_measured() {
  std::vector<Measured> all;
  if (validation_data_) all.push_back({"", *validation_data_, task_model_.task()});
  for (const ValidationSet& set : validation_sets_) {
    all.push_back({set.name + "/", *set.data, *set.task});
  }
  if (all.empty()) throw UserError(kNoData);
  return all;
}

std::optional<NamedValues> TrainerBase::validation_means(std::optional<int64_t> max_batches,
                                                         const ValidationHooks& hooks) {
  NamedValues values;
  broken_in_validation_ = {};
  for (const Measured& measured : all_measured()) {
    const auto sums = sum_validation(measured, max_batches, hooks);
    if (!sums) return std::nullopt;
    NamedValues means = sums->means();
    for (auto& metric : measured.task.metrics(means)) means.push_back(std::move(metric));
    for (auto& [name, value] : means) values.emplace_back(measured.prefix + name, value);
  }
  return values;
}

void TrainerBase::rehearse_validation(int64_t texts) {
  std::vector<std::string> names;
  bool are_known = true;
  for (const Measured& measured : all_measured()) {
    const auto sums = sum_validation(measured, 1, {});
    // A signal has come; or no token is among these, as there may be in all data together.
    are_known = are_known && sums && sums->has_tokens();
    if (!are_known) continue;
    NamedValues means = sums->means();
    for (auto& metric : measured.task.metrics(means)) means.push_back(std::move(metric));
    for (const auto& [name, value] : means) names.push_back(measured.prefix + name);
  }
  broken_in_validation_ = {};
  std::optional<NamedValues> scores = NamedValues();
  if (texts > 0) scores = text_score_means(texts);
  if (!are_known || !scores) return;
  for (const auto& [name, value] : *scores) names.push_back(name);
  validation_names_ = std::move(names);
}

std::optional<ValidationSums> TrainerBase::sum_validation(const Measured& measured,
                                                          std::optional<int64_t> max_batches,
                                                          const ValidationHooks& hooks) {
  settle();
  const Stopwatch stopwatch(time_.validation);
  const StopWait wait(kValidationsBatch);
  const RngGuard random_numbers(device_);
  const EvaluationMode evaluation(model());
  const at::NoGradGuard no_grad;
  State state = state_;
  state.phase = Phase::validate;
  // A checkpoint holds training's random numbers.
  std::function<void()> save;
  if (hooks.save) save = [&] { random_numbers.with_former(hooks.save); };

  ValidationSums sums;
  SignalPoll poll(ranks_, feed_.signals());
  BatchSource& data = measured.data;
  const int64_t all = data.batches_per_epoch();
  if (hooks.count.begin) {
    hooks.count.begin(std::min(max_batches.value_or(all), all), "micro-batches");
  }
  if (max_batches && *max_batches < all) {
    data.start_spread(*max_batches * training_.batch_size * ranks_.world_size());
  } else {
    data.start_epoch(0, 0);
  }
  for (int64_t i = 0; !max_batches || i < *max_batches; ++i) {
    if (!may_go_on(poll, save)) return std::nullopt;
    enter("validation");
    const auto batch = next_batch(data);
    if (!batch) break;
    if (hooks.before) hooks.before(state, *batch);
    const Loss loss = explaining({.activity = "validation", .batch = batch.get(), .samples = &data},
                                 [&](TaskModel& model) { return model.forward(*batch, state); });
    if (hooks.after) hooks.after(state, *batch, loss);
    sums.add(*batch, loss);
    if (hooks.count.one_done) hooks.count.one_done();
  }
  sums.sum_over(ranks_);
  broken_in_validation_.add(sums.broken(), sums.broken_on_all_ranks());
  BrokenSamples of_data;
  of_data.add(sums.broken(), sums.broken_on_all_ranks());
  require_few(of_data, data);
  return sums;
}

}  // namespace phalanx
