// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/logging_mixin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>

#include "trainer/api/metric_set.h"
#include "trainer/api/parameters.h"
#include "trainer/api/task.h"
#include "trainer/base/stop_reason.h"
#include "trainer/base/stop_signal.h"
#include "trainer/base/unsigned_nan.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/tree/schema.h"
#include "trainer/io/file.h"
#include "trainer/loop/next_command.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/metric_sums.h"
#include "trainer/metrics/record.h"
#include "trainer/metrics/sink.h"
#include "trainer/mixins/schedule_notes.h"
#include "trainer/mixins/start_screen.h"
#include "trainer/mixins/undone_step.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

std::string next_command(const TrainerBase& trainer) {
  const std::string& exp_dir = trainer.config().exp_dir;
  if (!trainer.finished()) return command_to_resume(exp_dir, trainer.resolved_config());
  if (trainer.can_validate()) return command_to_evaluate(exp_dir);
  return fmt::format("tensorboard --logdir {}", config::shell_word(exp_dir));
}

// The first line of a longer message says what is wrong.
std::string no_sample_line(const std::exception& error) {
  const std::string reason = error_text(error);
  return "\n\nno sample: " + reason.substr(0, reason.find('\n'));
}

// The task's sample, or one line with the reason that there is none: a run that has trained and
// saved to its end has not failed, whatever its model says. What only one of several ranks meets
// does end it: the others may wait for that rank.
std::string sample_lines(TrainerBase& trainer) {
  try {
    const std::string sample = trainer.sample();
    return sample.empty() ? "" : "\n\nsample:\n" + sample;
  } catch (const NoSample& error) {
    return no_sample_line(error);
  } catch (const std::exception& error) {
    if (!trainer.ranks().is_single_rank()) throw;
    return no_sample_line(error);
  }
}

// Two that would write the same.
std::optional<std::string> repeated_sink(const LoggingConfig& config) {
  for (const config::Chosen& sink : config.sinks) {
    const auto is_same = [&](const config::Chosen& other) {
      return config::same_value(sink.section(), other.section());
    };
    if (std::count_if(config.sinks.begin(), config.sinks.end(), is_same) > 1) {
      return "sinks: '" + sink.name() + "' is listed twice";
    }
  }
  return std::nullopt;
}

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

bool has_skipped_every_step(const TrainerBase& trainer) {
  const State& state = trainer.state();
  return state.step > 0 && state.overflowed_steps >= state.step;
}

// How the run has ended: "finished".
std::string end_of(const TrainerBase& trainer, int signal) {
  if (!trainer.finished()) return fmt::format("stopped by signal {}", signal);
  if (has_skipped_every_step(trainer)) return "ended untrained";
  return trainer.early_end().empty() ? "finished" : "ended early";
}

// Why no weight has moved, and what helps; empty where one has.
std::string skipped_line(const TrainerBase& trainer) {
  if (!has_skipped_every_step(trainer)) return "";
  const State& state = trainer.state();
  return fmt::format(
      "\n  skipped     {}, as the gradients of float16 overflowed: no weight has moved; the loss "
      "scale is {:.3g} now: set mixed_precision.init_scale to that or less, or "
      "mixed_precision.dtype "
      "to bfloat16",
      state.step == 1 ? "the only step" : fmt::format("all {} steps", state.step),
      state.loss_scale);
}

// Throughput of the steps, and where all the time went, of this process.
std::string time_lines(const TimeSplit& time, int64_t steps, int64_t tokens) {
  if (steps == 0) return "";
  const double training = time.total - time.validation;
  const double rest =
      time.total - time.data - time.forward_backward - time.update - time.validation;
  const auto share = [&](double seconds) { return 100 * seconds / time.total; };
  return fmt::format(
      "\n  {:<12}{:.0f} tokens/s, {:.2f} steps/s\n"
      "  {:<12}forward and backward {:.1f}%, update {:.1f}%, data {:.1f}%, validation {:.1f}%, "
      "rest {:.1f}%",
      "throughput", static_cast<double>(tokens) / training, static_cast<double>(steps) / training,
      "time", share(time.forward_backward), share(time.update), share(time.data),
      share(time.validation), share(rest));
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

// The learning rate and the gradient norm of each optimizer that has moved.
void append_rates(const TrainerBase& trainer, const StepResult& result,
                  std::vector<std::pair<std::string, FieldValue>>& fields) {
  const auto add_norm = [&](const std::string& name, const std::optional<at::Tensor>& norm) {
    if (norm) fields.emplace_back(name, norm->item().toDouble());
  };
  const bool has_one = trainer.optimizers().front().name().empty();
  if (has_one && !result.is_skipped) fields.emplace_back("lr", result.lr);
  add_norm("grad_norm", result.grad_norm);
  for (const OptimizerResult& moved : result.optimizers) {
    fields.emplace_back("lr/" + moved.name, moved.lr);
    add_norm("grad_norm/" + moved.name, moved.grad_norm);
  }
}

}  // namespace

void LoggingConfig::describe(config::Schema<LoggingConfig>& s) {
  s.field("every_n_steps", &LoggingConfig::every_n_steps,
          "log the first, the last and every n-th step")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("sinks", &LoggingConfig::sinks,
          "where records go: names, or sections with a sink's own fields")
      .out_of(registered_choice<Sink>())
      .resume_may_change();
  s.check(repeated_sink);
}

void LoggingMixinBase::Track::add(double loss, int64_t step) {
  last = loss;
  if (!best || loss < *best || std::isnan(*best)) {
    best = loss;
    best_step = step;
  }
}

std::string LoggingMixinBase::Track::line(const char* name) const {
  if (!best) return "";
  return fmt::format("\n  {:<12}last {:.4f}, best {:.4f} at step {}", name, unsigned_nan(last),
                     unsigned_nan(*best), best_step);
}

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
  first_state_ = trainer.state();
  metrics_ =
      LastMetrics(declared_metrics(trainer.task_model().task()).value_names(Phase::validate));
  reserve_names(trainer);
  added_.end(first_state_.step);
  const RunDescription run = describe_run(trainer);
  open_logs(trainer, run);
  for (const auto& line : run.lines) Console::standard().line(line);
  const std::string warmup = long_warmup(trainer);
  if (!warmup.empty() && trainer.ranks().is_first()) {
    fmt::print(stderr, "warning: {}\n", warmup);
  }
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
  const auto resumed =
      first_state_.step > 0 ? std::optional<int64_t>(first_state_.step) : std::nullopt;
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
  auto& fields = record.fields;
  NamedValues values = trainer.global_losses(result);
  if (result.is_skipped && result.loss_parts.empty()) {
    values.erase(values.begin());  // no loss has been differentiated
  } else {
    training_.add(values.front().second, state.step);
  }
  const NamedValues metrics = trainer.step_metrics();
  metrics_.take_step(metrics);
  append_metrics(values, metrics);
  constexpr size_t kOthers = 8;  // rates, the loss scale, times
  fields.reserve(values.size() + 2 * result.optimizers.size() + kOthers);
  for (const auto& [name, value] : values) fields.emplace_back(name, value);
  append_rates(trainer, result, fields);
  added_.append_to(fields);
  if (is_guarded) fields.emplace_back("skipped", result.guarded_by);
  if (state.loss_scale > 0) {
    fields.emplace_back("loss_scale", state.loss_scale);
    fields.emplace_back("skipped_steps", state.overflowed_steps);
  }
  fields.emplace_back("tokens_per_second",
                      static_cast<double>(result.tokens) / result.step_seconds);
  fields.emplace_back("step_seconds", result.step_seconds);
  fields.emplace_back("data_seconds", result.data_seconds);
  if (!trainer.ranks().is_first()) return log_own_step(state, result);
  write(record);
}

// What was logged beyond the checkpoint is void, as after a resume from it.
void LoggingMixinBase::log_anew(TrainerBase& trainer) {
  added_.end(trainer.state().step);
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
    validation_.add(value_of(values, "loss", values.front().second), record.state.step);
  }
  metrics_.take_validation(values);
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
  print_end(trainer);
  report_at_end();
}

void LoggingMixinBase::report_at_end() {
  count_lost_lines();
  lost_.report_at_end();
}

void LoggingMixinBase::print_end(TrainerBase& trainer) const {
  const State& state = trainer.state();
  // Rank 0's: one may come on some ranks only now, and all must sample a sharded model, or none.
  const auto signal = static_cast<int>(trainer.of_first_rank(StopSignal::received()));
  const std::string reason = StopReason::text();  // a launcher's, which goes on
  const bool goes_on = !trainer.finished() && !reason.empty();
  std::string text =
      fmt::format("\n{} at step {} (epoch {}, {} samples, {:.1f} s of training){}",
                  goes_on ? "stopped" : end_of(trainer, signal), state.step, state.epoch,
                  state.samples, trainer.elapsed_now(), goes_on ? ": " + reason : "");
  if (!trainer.early_end().empty()) text += "\n  reason      " + trainer.early_end();
  text += training_.line("train loss") + validation_.line("validation");
  if (const auto metrics = metrics_.text(); !metrics.empty()) {
    text += "\n  metrics     " + metrics;
  }
  if (state.validation_due)
    text += "\n  validation  of this step given up; the next start makes it";
  text += skipped_line(trainer);
  if (const auto broken = trainer.broken_samples(); !broken.empty()) {
    text += "\n  left out    broken samples: " + broken;
  }
  text += time_lines(trainer.time_split(), state.step - first_state_.step,
                     state.tokens - first_state_.tokens);
  if (signal == 0) text += sample_lines(trainer);  // a signal is in a hurry
  if (!goes_on) text += "\n\nnext: " + next_command(trainer);
  Console::standard().line(text);
}

}  // namespace phalanx
