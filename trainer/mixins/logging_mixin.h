// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/io/lost_records.h"
#include "trainer/mixins/end_of_run.h"
#include "trainer/mixins/logging_config.h"
#include "trainer/mixins/step_values.h"

namespace phalanx {

class TrainerBase;

class Sink;
struct Record;
struct RunDescription;

/// What LoggingMixin does, whatever the composition. A log that cannot be opened ends the run
/// before its first step; one that cannot be written later lacks some records, which is told.
class LoggingMixinBase {
 public:
  explicit LoggingMixinBase(LoggingConfig config);
  LoggingMixinBase(const LoggingMixinBase&) = delete;
  LoggingMixinBase& operator=(const LoggingMixinBase&) = delete;
  /// A run that an error ends tells here what its logs lack.
  ~LoggingMixinBase();

 protected:
  void start(TrainerBase& trainer);
  bool may_log(const TrainerBase& trainer) const;
  void add_value(const TrainerBase& trainer, std::string_view section, std::string name,
                 StepValues::Value value);
  void prepare_step(TrainerBase& trainer);
  void log_step(TrainerBase& trainer, const StepResult& result);
  void log_validation(TrainerBase& trainer, const NamedValues& values);
  void log_anew(TrainerBase& trainer);
  void finish(TrainerBase& trainer);

 private:
  struct NamedSink {
    std::string name;  ///< As the user is told it: "the sink jsonl".
    std::shared_ptr<Sink> sink;
  };

  void open_logs(const TrainerBase& trainer, const RunDescription& run);
  void reserve_names(const TrainerBase& trainer);
  bool is_logged(const TrainerBase& trainer, int64_t step) const;
  void log_own_step(const State& state, const StepResult& result);
  void write_step(TrainerBase& trainer, const StepResult& result);
  void write(const Record& record);
  void count_lost_lines();
  void report_at_end();

  LoggingConfig config_;
  std::vector<NamedSink> sinks_;
  std::string own_log_;  ///< The name of this rank's own file, where it has one.
  LostRecords lost_;
  LoggedRun run_;
  StepValues added_;  ///< By other mixins.
};

/// One screen at the start, records of steps and validations to the sinks, one screen at the end.
template <class Derived>
class LoggingMixin : public Mixin<Derived, LoggingMixin>, private LoggingMixinBase {
 public:
  static constexpr std::string_view kSection = "logging";
  static constexpr std::string_view kMeaning = "what is written of a run, how often, and where to";
  using Config = LoggingConfig;
  using Hooks = HookList<TrainingStart, StepStart, StepEnd, StepUndone, ValidationEnd, TrainingEnd>;

  using LoggingMixinBase::LoggingMixinBase;

  /// Adds a value to the log's record of the present step: to metrics.jsonl, all sinks and the
  /// console. `mixin` is who calls it, `*this`. A tensor has one element, and is read only if the
  /// step is logged. From the step's start to on_after_backward, and in on_step_end of a mixin that
  /// comes before this one; the last call of a step counts. All ranks add the same names, and
  /// rank 0's values are logged. Throws std::logic_error for a name that records have, or that
  /// another mixin has added in this step, and where no step is going on.
  template <class From>
  void log_value(const From& /*mixin*/, std::string name, double value) {
    add_value(this->trainer(), From::kSection, std::move(name), value);
  }
  template <class From>
  void log_value(const From& /*mixin*/, std::string name, const at::Tensor& value) {
    add_value(this->trainer(), From::kSection, std::move(name), value);
  }
  /// Whether the present step may be logged: a mixin need not measure values of another one. False
  /// for all other steps but those that a guard skips, which are logged nevertheless. The same on
  /// all ranks.
  bool may_log_step() { return may_log(this->trainer()); }

  void on_training_start(const State&) { start(this->trainer()); }
  void on_step_start(const State&) { prepare_step(this->trainer()); }
  void on_step_end(const State&, const StepResult& result) { log_step(this->trainer(), result); }
  void on_step_undone(const State&) { log_anew(this->trainer()); }
  void on_validation_end(const State&, const NamedValues& values) {
    log_validation(this->trainer(), values);
  }
  void on_training_end(const State&) { finish(this->trainer()); }
};

}  // namespace phalanx
