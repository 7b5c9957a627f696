// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/forward.h"
#include "trainer/io/lost_records.h"
#include "trainer/mixins/last_metrics.h"

namespace phalanx {

class TrainerBase;

class Sink;
struct Record;
struct RunDescription;

/// The section `logging`: how often, and where to.
struct LoggingConfig {
  int64_t every_n_steps = 10;
  std::vector<config::Chosen> sinks = {"progress", "jsonl", "tensorboard"};

  static void describe(config::Schema<LoggingConfig>& s);
};

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
  void prepare_step(TrainerBase& trainer);
  void log_step(TrainerBase& trainer, const StepResult& result);
  void log_validation(TrainerBase& trainer, const NamedValues& values);
  void log_anew(TrainerBase& trainer);
  void finish(TrainerBase& trainer);

 private:
  // A loss that the end screen shows.
  struct Track {
    std::optional<double> best;
    int64_t best_step = 0;
    double last = 0;

    void add(double loss, int64_t step);
    std::string line(const char* name) const;
  };

  struct NamedSink {
    std::string name;  ///< As the user is told it: "the sink jsonl".
    std::shared_ptr<Sink> sink;
  };

  void open_logs(const TrainerBase& trainer, const RunDescription& run);
  bool is_logged(const TrainerBase& trainer, int64_t step) const;
  void log_own_step(const State& state, const StepResult& result);
  void write(const Record& record);
  void count_lost_lines();
  void report_at_end();
  void print_end(TrainerBase& trainer) const;

  LoggingConfig config_;
  std::vector<NamedSink> sinks_;
  std::string own_log_;  ///< The name of this rank's own file, where it has one.
  LostRecords lost_;
  State first_state_;  ///< Where this process began.
  Track training_;
  Track validation_;
  LastMetrics metrics_;
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
