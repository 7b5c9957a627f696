// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/host/listener.h"
#include "trainer/io/lost_records.h"
#include "trainer/launch/launcher.h"
#include "trainer/launch/output_pump.h"
#include "trainer/launch/rank_child.h"
#include "trainer/launch/rank_group.h"
#include "trainer/launch/report.h"
#include "trainer/launch/signal_relay.h"
#include "trainer/launch/verdict.h"

namespace phalanx {

/// The launcher's side of a group of ranks: starts them, passes signals and output on, and sees to
/// it that all of them end. One loop in one thread, which never waits for a single one of them.
class Supervisor {
 public:
  /// `signals` are those of this process, and must outlive the supervisor.
  Supervisor(RankGroup group, SignalRelay& signals);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  /// Kills the ranks that still run.
  ~Supervisor();

  /// Forks all ranks. Throws std::system_error.
  void start(const RankMain& rank_main);
  /// Calls `react` in `wait`, whenever the descriptor can be read. None: -1.
  void watch(int descriptor, std::function<void()> react);
  /// Ends that for all descriptors; `react` itself may call it.
  void stop_watching();
  /// Waits for the end of all of them; how each ended, by rank.
  std::vector<RankEnd> wait();

  /// Has the ranks end, as after a failure: SIGTERM after `patience`, then SIGKILL.
  void end_ranks(std::chrono::milliseconds patience);
  /// Whether SIGTERM or SIGINT was passed on to the ranks. Others a program may handle and go on.
  bool was_told_to_stop() const;
  /// The newest lines of a rank's stderr, else of its stdout, that have come through this process.
  std::string last_lines(int64_t local_rank) const;

 private:
  struct Rank {
    pid_t pid = 0;  ///< 0: not forked yet.
    ReportReader report;
    LinePump out;
    LinePump err;
    std::optional<LaunchClock::time_point> silent_since = {};  ///< Its report pipe was closed.
    std::set<int> sent = {};  ///< Signals by which this launcher has ended it, after a failure.
    std::optional<RankEnd> end = {};

    bool runs() const { return pid > 0 && !end; }
  };

  struct Watched {
    int descriptor = -1;
    std::function<void()> react;
  };

  void start_rank(int64_t local_rank, Listener& listener, const RankMain& rank_main);
  [[noreturn]] void become_rank(int64_t local_rank, RankChild child, Listener& listener,
                                const RankMain& rank_main) noexcept;
  Environment place_of(int64_t local_rank, Listener& listener) const;

  void wait_for_events();
  int timeout() const;
  bool is_over() const;
  bool any_alive() const;

  void take_signals();
  void relay(int signal);
  void send_to_all(int signal);
  void end_all_by(int signal);
  void suspend();

  void read_reports();
  void reap();
  void note_end(Rank& rank, int status);
  LaunchClock::time_point time_of_silent_end(const Rank& rank) const;
  std::optional<RankReport> report_of_program(const Rank& rank, int status) const;
  void pump_output();
  void tell_of_lost_lines();
  void tell_of_lost_lines_in_the_end();
  void end_the_rest();

  RankGroup group_;
  int64_t threads_;  ///< For each rank, while it is bound to no fewer cores.
  SignalRelay& signals_;
  std::vector<Watched> watched_;
  Outlet out_;
  Outlet err_;
  LostRecords lost_of_out_;  ///< Told on the other stream.
  LostRecords lost_of_err_;
  std::vector<Rank> ranks_;
  std::set<int> relayed_;
  std::optional<LaunchClock::time_point> deadline_;     ///< For the ranks after one has failed.
  std::optional<LaunchClock::time_point> told_to_end_;  ///< When SIGTERM was sent for that.
  bool output_given_up_ = false;
};

}  // namespace phalanx
