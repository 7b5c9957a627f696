// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/validation.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/base/stop_wait.h"
#include "trainer/base/user_error.h"
#include "trainer/loop/leave_out.h"
#include "trainer/loop/same_data.h"
#include "trainer/loop/signal_poll.h"
#include "trainer/loop/text_score_sums.h"
#include "trainer/loop/use_model.h"
#include "trainer/loop/validation_sums.h"
#include "trainer/step/activity.h"
#include "trainer/step/stopwatch.h"
#include "trainer/tensors/random.h"

namespace phalanx {
namespace {

constexpr const char* kValidationsBatch = "this micro-batch of the validation";
constexpr const char* kNoData = "the task has no validation data";
constexpr const char* kTexts = "the texts of a validation";

// A task tells what is wrong with its data by a field of its own ("task.data.validation_path: "),
// which is not where files that were given to it stand.
std::string without_field(const std::string& message) {
  const size_t end = message.find(": ");
  const bool begins_with_field = message.starts_with("task.") && end < message.find(' ');
  return begins_with_field ? message.substr(end + 2) : message;
}

std::unique_ptr<BatchSource> open_for_validation(AnyTask& task, const BatchRequest& request) {
  try {
    return task.build_data(Phase::validate, request);
  } catch (const UserError& error) {
    if (request.files.empty()) throw;
    throw UserError(without_field(error.what()));
  }
}

/// Between two micro-batches: saves where a signal asks for that, and says whether the run goes on.
class SignalsBetween {
 public:
  SignalsBetween(const Ranks& ranks, SignalAgreement* signals) : ranks_(ranks), signals_(signals) {
    if (signals_ != nullptr) poll_.emplace(ranks_, *signals_);
  }

  bool may_go_on(const std::function<void()>& save) {
    if (!poll_) return true;
    poll_->look();
    if (signals_->stops(ranks_)) return false;
    if (save && signals_->take_save_request()) save();
    return true;
  }

 private:
  const Ranks& ranks_;
  SignalAgreement* signals_;
  std::optional<SignalPoll> poll_;
};

}  // namespace

void Validation::open(const BatchRequest& request) {
  if (!request.files.empty()) sets_.clear();
  data_ = open_for_validation(context_.parts.task_model().task(), request);
  if (!has_data()) throw UserError(kNoData);
  if (data_) require_same_data(context_.parts.ranks(), data_->fingerprint());
}

void Validation::add_set(const std::string& name, std::shared_ptr<AnyTask> task,
                         const BatchRequest& request) {
  task->join(context_.parts.data_ranks());
  task->check_model(context_.parts.model());
  ValidationSet set{.name = name, .task = std::move(task), .data = nullptr};
  try {
    set.data = open_for_validation(*set.task, request);
  } catch (const UserError& error) {
    throw UserError(fmt::format("validation.sets.{}: {}", name, error.what()));
  }
  if (!set.data) throw UserError(fmt::format("validation.sets.{}: {}", name, kNoData));
  require_same_data(context_.parts.ranks(), set.data->fingerprint());
  sets_.push_back(std::move(set));
}

std::vector<Validation::Measured> Validation::all_measured() const {
  std::vector<Measured> all;
  if (data_) all.push_back({"", *data_, context_.parts.task_model().task()});
  for (const ValidationSet& set : sets_) all.push_back({set.name + "/", *set.data, *set.task});
  if (all.empty()) throw UserError(kNoData);
  return all;
}

std::unique_ptr<Batch> Validation::next_batch(BatchSource& data) const {
  auto batch = data.next();
  if (!batch) return batch;
  if (context_.parts.is_idle()) leave_out(*batch);
  context_.transport.bring(*batch);
  return batch;
}

std::optional<NamedValues> Validation::means(std::optional<int64_t> max_batches,
                                             const ValidationHooks& hooks,
                                             SignalAgreement* signals) {
  NamedValues values;
  broken_ = {};
  for (const Measured& measured : all_measured()) {
    const auto sums = sum(measured, max_batches, hooks, signals);
    if (!sums) return std::nullopt;
    for (auto& [name, value] : sums->values()) {
      values.emplace_back(measured.prefix + name, value);
    }
  }
  return values;
}

void Validation::rehearse(int64_t texts, SignalAgreement* signals) {
  require_text_data(texts);
  std::vector<std::string> names;
  bool are_known = true;
  for (const Measured& measured : all_measured()) {
    const auto sums = sum(measured, 1, {}, signals);
    // A signal has come; or no token is among these, as there may be in all data together.
    are_known = are_known && sums && sums->has_tokens();
    if (!are_known) continue;
    for (const auto& [name, value] : sums->values()) {
      names.push_back(measured.prefix + name);
    }
  }
  broken_ = {};
  std::optional<NamedValues> scores = NamedValues();
  if (texts > 0) scores = text_score_means(texts, {}, signals);
  if (!are_known || !scores) return;
  for (const auto& [name, value] : *scores) names.push_back(name);
  names_ = std::move(names);
}

std::optional<ValidationSums> Validation::sum(const Measured& measured,
                                              std::optional<int64_t> max_batches,
                                              const ValidationHooks& hooks,
                                              SignalAgreement* signals) {
  const Ranks& ranks = context_.parts.ranks();
  const Stopwatch stopwatch(context_.time.validation);
  const StopWait wait(kValidationsBatch);
  const RngGuard random_numbers(context_.parts.device());
  const EvaluationMode evaluation(context_.parts.model());
  const at::NoGradGuard no_grad;
  State state = context_.state;
  state.phase = Phase::validate;
  // A checkpoint holds training's random numbers.
  std::function<void()> save;
  if (hooks.save) save = [&] { random_numbers.with_former(hooks.save); };

  ValidationSums sums(measured.task);
  SignalsBetween between(ranks, signals);
  BatchSource& data = measured.data;
  const int64_t all = data.batches_per_epoch();
  if (hooks.count.begin) {
    hooks.count.begin(std::min(max_batches.value_or(all), all), "micro-batches");
  }
  if (max_batches && *max_batches < all) {
    data.start_spread(*max_batches * batch_size_ * context_.parts.shares());
  } else {
    data.start_epoch(0, 0);
  }
  for (int64_t i = 0; !max_batches || i < *max_batches; ++i) {
    if (!between.may_go_on(save)) return std::nullopt;
    enter(ranks, context_.state.step, "validation");
    const auto batch = next_batch(data);
    if (!batch) break;
    if (hooks.before) hooks.before(state, *batch);
    const Loss loss = context_.errors.explaining(
        {.activity = "validation", .batch = batch.get(), .samples = &data},
        [&](TaskModel& model) { return model.forward(*batch, state); });
    if (hooks.after) hooks.after(state, *batch, loss);
    context_.errors.explaining_memory("validation", [&] { sums.add(*batch, loss); });
    if (hooks.count.one_done) hooks.count.one_done();
  }
  sums.sum_over(context_.parts.data_ranks(), ranks);
  leave_out_broken(sums, measured);
  return sums;
}

void Validation::leave_out_broken(const ValidationSums& sums, const Measured& measured) {
  broken_.add(sums.broken(), sums.broken_on_all_ranks());
  BrokenSamples of_data;
  of_data.add(sums.broken(), sums.broken_on_all_ranks());
  std::string where;
  if (!measured.prefix.empty()) {
    where = "validation.sets." + measured.prefix.substr(0, measured.prefix.size() - 1) + ": ";
  }
  of_data.require_at_most(measured.data.max_broken(), context_.parts.ranks(), where);
}

void Validation::require_text_data(int64_t texts) const {
  if (texts == 0 || data_) return;
  throw UserError(
      "validation.generate writes texts for the task's own validation data, and it has none: set "
      "validation.generate.n=0, or give the task validation data (task.data)");
}

std::optional<NamedValues> Validation::text_score_means(int64_t samples,
                                                        const ValidationHooks& hooks,
                                                        SignalAgreement* signals) {
  require_text_data(samples);
  const Ranks& ranks = context_.parts.ranks();
  const Stopwatch stopwatch(context_.time.validation);
  const StopWait wait(kValidationsBatch);
  State state = context_.state;
  state.phase = Phase::validate;
  TextScoreSums sums;
  const int64_t of_round = batch_size_ * context_.parts.shares();
  const int64_t rounds = (samples + of_round - 1) / of_round;
  if (hooks.count.begin) {
    hooks.count.begin(std::min(rounds, data_->batches_per_epoch()), "batches of texts");
  }
  SignalsBetween between(ranks, signals);
  data_->start_first(samples);
  for (int64_t round = 0; round < rounds; ++round) {
    if (!between.may_go_on(hooks.save)) return std::nullopt;
    enter(ranks, context_.state.step, kTexts);
    const auto batch = next_batch(*data_);
    if (!batch) break;
    use_model(context_, {.activity = kTexts, .batch = batch.get(), .samples = data_.get()},
              [&](const TaskModel& used) {
                sums.add(*batch, used.task().text_scores(used.model(), *batch, state));
              });
    if (hooks.count.one_done) hooks.count.one_done();
  }
  return sums.means(ranks);
}

}  // namespace phalanx
