// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/tree/no_fields.h"
#include "trainer/metrics/console.h"
#include "trainer/metrics/progress_format.h"
#include "trainer/metrics/sink.h"

namespace phalanx {

/// Where a run stands, for people: one live line on a terminal, a plain line for each record
/// elsewhere.
class ProgressSink : public Sink {
 public:
  using Config = config::NoFields;

  explicit ProgressSink(const Config&) : ProgressSink(Console::standard()) {}
  /// The console must outlive the sink.
  explicit ProgressSink(Console& console) : console_(console) {}
  ProgressSink(const ProgressSink&) = delete;
  ProgressSink& operator=(const ProgressSink&) = delete;
  /// A run that an error ends leaves its last line on the screen.
  ~ProgressSink() override { console_.end_live(); }

  void open(const RunDescription& run, std::optional<int64_t> resumed_step) override;
  void write(const Record& record) override;
  void close() override { console_.end_live(); }

 private:
  void show_live(std::vector<Segment> segments);

  Console& console_;
  std::optional<int64_t> max_steps_;
  std::optional<RemainingTime> remaining_;
  bool has_trained_ = false;  ///< Since it was opened.
  std::optional<double> validation_loss_;
  std::vector<Segment> train_segments_;
};

}  // namespace phalanx
