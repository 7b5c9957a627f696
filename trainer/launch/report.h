// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/base/descriptor.h"
#include "trainer/launch/launcher.h"

namespace phalanx {

/// CLOCK_MONOTONIC, which all processes of a host share.
using LaunchClock = std::chrono::steady_clock;

/// What a rank says about its end, and when that was.
struct RankReport {
  RankOutcome outcome;
  LaunchClock::time_point time;
};

/// Writes a report, with at most the first 64 KiB of its message. One that is lost on the way
/// counts as none, so errors are not told.
void send_report(const Descriptor& pipe, const RankReport& report);

/// The same of a rank that a signal ends, from that signal's handler: takes no memory and waits for
/// no lock.
void send_report_of_signal(int pipe, int signal, std::string_view message) noexcept;

/// The launcher's end of a report pipe.
class ReportReader {
 public:
  explicit ReportReader(Descriptor pipe) : pipe_(std::move(pipe)) {}

  /// Reads what there is; never waits. Closes the pipe at its end: is_open() is then false.
  void read();
  /// The report, once it is here as a whole.
  std::optional<RankReport> report() const;

  bool is_open() const { return pipe_.is_open(); }
  void close() { pipe_.close(); }
  int descriptor() const { return pipe_.number(); }

 private:
  Descriptor pipe_;
  std::string bytes_;
};

}  // namespace phalanx
