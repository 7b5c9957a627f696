#include "trainer/mixins/logging_mixin.h"

#include <ATen/ops/item.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "trainer/config/diagnostics.h"
#include "trainer/config/nearest.h"
#include "trainer/config/resolve.h"
#include "trainer/core/parameters.h"
#include "trainer/core/stop_signal.h"
#include "trainer/metrics/record.h"
#include "trainer/metrics/sink.h"
#include "trainer/mixins/start_screen.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

std::shared_ptr<Sink> make_sink(const std::string& name) {
  const auto& entry = Registry<Sink>::instance().at(name);
  config::Diagnostics diagnostics;
  const auto section = config::resolve(*entry.declaration(), config::Node::map(), diagnostics);
  diagnostics.throw_if_any();
  return entry.make(section);
}

std::string next_command(const TrainerBase& trainer) {
  const std::string& exp_dir = trainer.config().exp_dir;
  if (!trainer.finished()) return fmt::format("trainer {}/config.yaml goes on", exp_dir);
  if (trainer.validation_data() == nullptr) return fmt::format("tensorboard --logdir {}", exp_dir);
  return fmt::format("trainer evaluate {}", exp_dir);
}

std::optional<std::string> wrong_sinks(const LoggingConfig& config) {
  const auto& table = Registry<Sink>::instance().table();
  for (const auto& name : config.sinks) {
    if (std::count(config.sinks.begin(), config.sinks.end(), name) > 1) {
      return "the sink '" + name + "' is named twice";
    }
    if (!table.contains(name)) return unknown_name(table.kind(), name, table.names());
  }
  return std::nullopt;
}

}  // namespace

void LoggingConfig::describe(config::Schema<LoggingConfig>& s) {
  s.field("every_n_steps", &LoggingConfig::every_n_steps,
          "log the first, the last and every n-th step")
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.field("sinks", &LoggingConfig::sinks, "where records go; `trainer list sinks` names them")
      .resume_may_change();
  s.check(wrong_sinks);
}

void LoggingMixinBase::Track::add(double loss, int64_t step) {
  last = loss;
  if (!best || loss < *best) {
    best = loss;
    best_step = step;
  }
}

LoggingMixinBase::LoggingMixinBase(LoggingConfig config) : config_(std::move(config)) {
  for (const auto& name : config_.sinks) sinks_.push_back(make_sink(name));
}

LoggingMixinBase::~LoggingMixinBase() = default;

void LoggingMixinBase::start(TrainerBase& trainer) {
  first_state_ = trainer.state();
  const RunDescription run = describe_run(trainer);
  std::filesystem::create_directories(run.log_dir);
  for (const auto& line : run.lines) fmt::print("{}\n", line);
  std::fflush(stdout);
  const auto resumed =
      first_state_.step > 0 ? std::optional<int64_t>(first_state_.step) : std::nullopt;
  for (const auto& sink : sinks_) sink->open(run, resumed);
}

bool LoggingMixinBase::is_logged(const TrainerBase& trainer, int64_t step) const {
  return step % config_.every_n_steps == 0 || step == 1 || step == trainer.total_steps();
}

void LoggingMixinBase::prepare_step(TrainerBase& trainer) {
  if (is_logged(trainer, trainer.state().step)) trainer.request_grad_norm();
}

void LoggingMixinBase::log_step(TrainerBase& trainer, const StepResult& result) {
  const State& state = trainer.state();
  if (!is_logged(trainer, state.step) && !result.ends_training) return;
  Record record{.phase = Phase::train, .state = state, .fields = {}};
  auto& fields = record.fields;
  for (const auto& [name, value] : result.losses()) fields.emplace_back(name, value);
  training_.add(std::get<double>(fields.front().second), state.step);
  fields.emplace_back("lr", result.lr);
  if (result.grad_norm) fields.emplace_back("grad_norm", result.grad_norm->item().toDouble());
  fields.emplace_back("tokens_per_second",
                      static_cast<double>(result.tokens) / result.step_seconds);
  fields.emplace_back("step_seconds", result.step_seconds);
  fields.emplace_back("data_seconds", result.data_seconds);
  write(record);
}

void LoggingMixinBase::log_validation(TrainerBase& trainer, const NamedValues& values) {
  Record record{.phase = Phase::validate, .state = trainer.state(), .fields = {}};
  for (const auto& [name, value] : values) record.fields.emplace_back(name, value);
  validation_.add(value_of(values, "loss", 0), record.state.step);
  write(record);
}

void LoggingMixinBase::write(const Record& record) {
  for (const auto& sink : sinks_) sink->write(record);
}

void LoggingMixinBase::finish(TrainerBase& trainer) {
  for (const auto& sink : sinks_) sink->close();
  print_end(trainer);
}

void LoggingMixinBase::print_end(TrainerBase& trainer) const {
  const State& state = trainer.state();
  const TimeSplit time = trainer.time_split();
  const int signal = StopSignal::received();
  fmt::print("\n{} at step {} (epoch {}, {} samples, {:.1f} s of training)\n",
             signal != 0 ? fmt::format("stopped by signal {}", signal) : "finished", state.step,
             state.epoch, state.samples, state.elapsed);
  const auto print_track = [](const char* name, const Track& track) {
    if (!track.best) return;
    fmt::print("  {:<12}last {:.4f}, best {:.4f} at step {}\n", name, track.last, *track.best,
               track.best_step);
  };
  print_track("train loss", training_);
  print_track("validation", validation_);
  if (time.total > 0) {
    const auto tokens = static_cast<double>(state.tokens - first_state_.tokens);
    const auto steps = static_cast<double>(state.step - first_state_.step);
    const double rest =
        time.total - time.data - time.forward_backward - time.update - time.validation;
    const auto share = [&](double seconds) { return 100 * seconds / time.total; };
    fmt::print("  {:<12}{:.0f} tokens/s, {:.2f} steps/s\n", "throughput", tokens / time.total,
               steps / time.total);
    fmt::print(
        "  {:<12}forward and backward {:.1f}%, update {:.1f}%, data {:.1f}%, validation {:.1f}%, "
        "rest {:.1f}%\n",
        "time", share(time.forward_backward), share(time.update), share(time.data),
        share(time.validation), share(rest));
  }
  if (auto sample = trainer.sample(); !sample.empty()) fmt::print("\nsample:\n{}\n", sample);
  fmt::print("\nnext: {}\n", next_command(trainer));
  std::fflush(stdout);
}

}  // namespace phalanx
