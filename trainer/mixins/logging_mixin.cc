// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/logging_mixin.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/api/metric_set.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/io/file.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/metric_sums.h"
#include "trainer/metrics/record.h"
#include "trainer/metrics/sink.h"
#include "trainer/mixins/going_on.h"
#include "trainer/mixins/large_batch.h"
#include "trainer/mixins/never_acts.h"
#include "trainer/mixins/schedule_notes.h"
#include "trainer/mixins/start_screen.h"
#include "trainer/mixins/step_fields.h"
#include "trainer/mixins/undone_step.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

// Whether the step that begins may end the run: after a rollback its number does not tell. A step
// has at most as many samples as the config says; time ends a run at any step.
bool may_be_last(const TrainerBase& trainer) {
  const TrainingConfig& limits = trainer.training();
  const State& state = trainer.state();
  const int64_t samples = trainer.global_batch_size();
  if (limits.max_samples && state.samples + samples >= *limits.max_samples) return true;
  return limits.max_epochs && state.epoch + 1 >= *limits.max_epochs &&
         state.epoch_samples + samples >= trainer.samples_an_epoch();
}

// What cannot be opened before the first step is better told at once than hours later.
void as_users_mistake(std::string_view log_dir, const std::function<void()>& open) {
  const auto refuse = [&](const std::exception& error) {
    throw UserError(fmt::format("logs cannot be kept in '{}': {}", log_dir, error.what()));
  };
  try {
    open();
  } catch (const IoError& error) {
    refuse(error);
  } catch (const std::system_error& error) {
    refuse(error);
  }
}

}  // namespace

LoggingMixinBase::LoggingMixinBase(LoggingConfig config)
    : config_(std::move(config)),
      lost_([](const std::string& line) { Console::standard().announce(line); }) {
  for (const config::Chosen& sink : config_.sinks) {
    sinks_.push_back(
        {.name = "the sink " + sink.name(), .sink = Registry<Sink>::instance().make(sink)});
  }
}

LoggingMixinBase::~LoggingMixinBase() {
  try {
    report_at_end();
  } catch (const std::exception&) {
    // The error that ends the run says more.
  }
}

void LoggingMixinBase::start(TrainerBase& trainer) {
  run_.began = trainer.state();
  run_.metrics =
      LastMetrics(declared_metrics(trainer.task_model().task()).value_names(Phase::validate));
  reserve_names(trainer);
  added_.end(run_.began.step);
  const RunDescription run = describe_run(trainer);
  open_logs(trainer, run);
  for (const auto& line : run.lines) Console::standard().line(line);
  std::vector<std::string> warnings = long_warmups(trainer);
  const std::string large = large_batch(
      trainer.training().batch_size, trainer.training_data().samples_per_epoch(), trainer.shares());
  if (!large.empty()) warnings.push_back(large);
  for (std::string& line : never_acting(trainer)) warnings.push_back(std::move(line));
  warn_of(warnings, trainer.ranks());
}

// A record may lack what its step did not measure.
void LoggingMixinBase::reserve_names(const TrainerBase& trainer) {
  std::vector<std::string> names =
      declared_metrics(trainer.task_model().task()).value_names(Phase::train);
  for (const OptimizerPart& part : trainer.optimizers()) {
    names.push_back("lr/" + part.name());
    names.push_back("grad_norm/" + part.name());
  }
  added_.reserve(std::move(names));
}

void LoggingMixinBase::open_logs(const TrainerBase& trainer, const RunDescription& run) {
  const Ranks& ranks = trainer.ranks();
  const std::filesystem::path folder = run.log_dir;
  const auto resumed = run_.began.step > 0 ? std::optional<int64_t>(run_.began.step) : std::nullopt;
  on_first_rank(ranks, [&] {
    as_users_mistake(run.log_dir, [&] {
      std::filesystem::create_directories(folder);
      for (const NamedSink& each : sinks_) each.sink->open(run, resumed);
    });
  });
  own_log_ = fmt::format("rank_{}.log", ranks.rank());
  as_users_mistake(run.log_dir, [&] { Console::standard().copy_to(folder / own_log_); });
}

bool LoggingMixinBase::is_logged(const TrainerBase& trainer, int64_t step) const {
  return step % config_.every_n_steps == 0 || step == 1 || step == trainer.total_steps();
}

// Only its end shows whether a step is the last one, where time is a limit.
bool LoggingMixinBase::may_log(const TrainerBase& trainer) const {
  return is_logged(trainer, trainer.state().step) || may_be_last(trainer) ||
         trainer.training().max_seconds;
}

void LoggingMixinBase::add_value(const TrainerBase& trainer, std::string_view section,
                                 std::string name, StepValues::Value value) {
  added_.add(section, trainer.state().step, std::move(name), std::move(value));
}

void LoggingMixinBase::prepare_step(TrainerBase& trainer) {
  const bool is_read = is_logged(trainer, trainer.state().step) || may_be_last(trainer);
  if (is_read) trainer.request_grad_norm();
  if (may_log(trainer)) trainer.request_metrics();
}

void LoggingMixinBase::log_step(TrainerBase& trainer, const StepResult& result) {
  write_step(trainer, result);
  added_.end(trainer.state().step);
}

void LoggingMixinBase::write_step(TrainerBase& trainer, const StepResult& result) {
  for (const BrokenSample& sample : result.broken) {
    Console::standard().line("warning: a broken sample is left out: " + sample.message);
  }
  const State& state = trainer.state();
  const bool is_guarded = !result.guarded_by.empty();
  if (!is_logged(trainer, state.step) && !result.ends_training && !is_guarded) return;
  trainer.settle();
  Record record{.phase = Phase::train, .state = state, .fields = {}};
  NamedValues values = trainer.global_losses(result);
  if (result.is_skipped && result.loss_parts.empty()) {
    values.erase(values.begin());  // no loss has been differentiated
  } else {
    run_.training.add(values.front().second, state.step);
  }
  const NamedValues metrics = trainer.step_metrics();
  run_.metrics.take_step(metrics);
  append_metrics(values, metrics);
  record.fields = step_fields(trainer, result, values, added_);
  if (!trainer.ranks().is_first()) return log_own_step(state, result);
  write(record);
}

// What was logged beyond the checkpoint is void, as after a resume from it.
void LoggingMixinBase::log_anew(TrainerBase& trainer) {
  added_.end(trainer.state().step);
  run_.training.forget_after(trainer.state().step);
  run_.validation.forget_after(trainer.state().step);
  const RunDescription run = describe_run(trainer);
  if (!trainer.ranks().is_first()) return;
  const State& state = trainer.state();
  for (const NamedSink& each : sinks_) {
    lost_.attempt(each.name, [&] { each.sink->open(run, state.step); });
  }
  // The last record of a run says where it has ended, with the samples that were left out.
  const bool is_missing = !is_logged(trainer, state.step);
  if (is_missing && end_of_undone_step(trainer).ends_training) {
    write({.phase = Phase::train, .state = state, .fields = {}});
  }
}

void LoggingMixinBase::log_validation(TrainerBase& trainer, const NamedValues& values) {
  if (trainer.purpose() != Purpose::training) return;  // No log is open.
  Record record{.phase = Phase::validate, .state = trainer.state(), .fields = {}};
  record.state.elapsed = trainer.elapsed_now();  // the validation itself included
  for (const auto& [name, value] : values) record.fields.emplace_back(name, value);
  // That of the first set where the task has no data of its own.
  if (!values.empty()) {
    run_.validation.add(value_of(values, "loss", values.front().second), record.state.step);
  }
  run_.metrics.take_validation(values);
  if (trainer.ranks().is_first()) write(record);
}

// What may differ on this rank: the losses and the rest are in rank 0's records.
void LoggingMixinBase::log_own_step(const State& state, const StepResult& result) {
  Console::standard().line(fmt::format("step {}: {:.4f} s, of which {:.4f} s waiting for data",
                                       state.step, result.step_seconds, result.data_seconds));
  count_lost_lines();
  lost_.report_if_due();
}

void LoggingMixinBase::write(const Record& record) {
  for (const NamedSink& each : sinks_) {
    lost_.attempt(each.name, [&] { each.sink->write(record); });
  }
  count_lost_lines();
  lost_.report_if_due();
}

void LoggingMixinBase::count_lost_lines() {
  lost_.add(own_log_, Console::standard().take_lost_of_copy());
  lost_.add("standard output", Console::standard().take_lost());
}

void LoggingMixinBase::finish(TrainerBase& trainer) {
  if (trainer.ranks().is_first()) {
    for (const NamedSink& each : sinks_) {
      lost_.attempt(each.name, [&] { each.sink->close(); });
    }
  }
  Console::standard().line(describe_end(trainer, run_));
  report_at_end();
}

void LoggingMixinBase::report_at_end() {
  count_lost_lines();
  lost_.report_at_end();
}

}  // namespace phalanx
