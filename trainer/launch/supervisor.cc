// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <limits>
#include <string>
#include <utility>

#include "trainer/host/local_address.h"
#include "trainer/topology/rank_threads.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

/// stdout or stderr of a rank.
struct Stream {
  Descriptor of_rank;  // What the rank writes to. None: where this process writes.
  LinePump pump;       // Reads it, if it is a pipe.
};

Stream open_stream(LineRoute route, int64_t rank, Outlet& outlet) {
  const bool has_log = route.file.is_open();
  if (has_log && !route.is_shown) return {std::move(route.file), LinePump({}, {}, outlet)};
  if (!has_log && route.is_shown && rank == 0) return {{}, LinePump({}, {}, outlet)};
  Pipe pipe = make_pipe();
  return {std::move(pipe.write_end), LinePump(std::move(pipe.read_end), std::move(route), outlet)};
}

Listener listen_on_loopback() {
  auto listener = listen_at(kLoopbackAddress, 0);
  if (!listener) throw_system_error("listen on 127.0.0.1");
  return std::move(*listener);
}

bool tells_own_failure(const std::optional<RankReport>& report) {
  return report && report->outcome.exit_code != 0 && !report->outcome.caused_by_peer;
}

}  // namespace

RankStreams streams_to_console(int64_t rank) {
  const std::string prefix = "[rank " + std::to_string(rank) + "] ";
  return {.out = {.prefix = prefix}, .err = {.prefix = prefix}};
}

Supervisor::Supervisor(RankGroup group, SignalRelay& signals)
    : group_(std::move(group)),
      threads_(threads_of_rank({.units = allowed_units(), .ranks = group_.count}, group_.count)),
      signals_(signals),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO),
      lost_of_out_([this](const std::string& line) { err_.add(line + "\n"); }),
      lost_of_err_([this](const std::string& line) { out_.add(line + "\n"); }) {
  ranks_.reserve(static_cast<size_t>(group_.count));
}

Supervisor::~Supervisor() {
  send_to_all(SIGKILL);
  for (const Rank& rank : ranks_) {
    while (rank.runs() && ::waitpid(rank.pid, nullptr, 0) < 0 && errno == EINTR) continue;
  }
}

void Supervisor::start(const RankMain& rank_main) {
  Listener listener = group_.is_whole_world ? listen_on_loopback() : Listener();
  for (int64_t rank = 0; rank < group_.count; ++rank) start_rank(rank, listener, rank_main);
}

void Supervisor::watch(int descriptor, std::function<void()> react) {
  watched_.push_back({descriptor, std::move(react)});
}

void Supervisor::stop_watching() {
  for (Watched& each : watched_) each.descriptor = -1;
}

void Supervisor::start_rank(int64_t local_rank, Listener& listener, const RankMain& rank_main) {
  const int64_t rank = group_.first.rank + local_rank;
  RankStreams streams = group_.streams ? group_.streams(local_rank) : streams_to_console(rank);
  Stream out = open_stream(std::move(streams.out), rank, out_);
  Stream err = open_stream(std::move(streams.err), rank, err_);
  Pipe report = make_pipe();
  ranks_.push_back({.report = ReportReader(std::move(report.read_end)),
                    .out = std::move(out.pump),
                    .err = std::move(err.pump)});
  RankChild child;
  child.launcher = ::getpid();
  child.threads = threads_;
  child.report = std::move(report.write_end);
  child.out = std::move(out.of_rank);
  child.err = std::move(err.of_rank);
  flush_streams();
  const pid_t pid = ::fork();
  if (pid == 0) become_rank(local_rank, std::move(child), listener, rank_main);
  if (pid < 0) {
    ranks_.pop_back();
    throw_system_error("start rank " + std::to_string(rank));
  }
  ::setpgid(pid, pid);  // by both, whoever comes first
  ranks_.back().pid = pid;
}

// Without exceptions: nothing of the launcher may go on in a child.
void Supervisor::become_rank(int64_t local_rank, RankChild child, Listener& listener,
                             const RankMain& rank_main) noexcept {
  ::setpgid(0, 0);
  die_with_launcher(child.launcher);
  child.environment = place_of(local_rank, listener);
  child.is_on_only_node = group_.is_whole_world;
  listener.socket.close();
  ranks_.clear();
  signals_.leave_to_child();
  run_rank(std::move(child), rank_main);
}

// Rank 0 takes the listener's socket with it.
Environment Supervisor::place_of(int64_t local_rank, Listener& listener) const {
  Environment place = group_.first;
  place.rank += local_rank;
  place.local_rank = local_rank;
  place.local_world_size = group_.count;
  if (!group_.is_whole_world) return place;
  place.master_addr = kLoopbackAddress;
  place.master_port = listener.port;
  if (place.rank == 0) place.listen_fd = listener.socket.release();
  return place;
}

std::vector<RankEnd> Supervisor::wait() {
  while (!is_over()) {
    wait_for_events();
    read_reports();
    take_signals();
    pump_output();
    end_the_rest();
  }
  tell_of_lost_lines_in_the_end();
  std::vector<RankEnd> ends;
  for (const Rank& rank : ranks_) ends.push_back(rank.end.value());
  return ends;
}

void Supervisor::wait_for_events() {
  std::vector<pollfd> events;
  for (const Watched& each : watched_) events.push_back({each.descriptor, POLLIN, 0});
  events.push_back({signals_.descriptor(), POLLIN, 0});
  for (const Rank& rank : ranks_) {
    if (rank.report.is_open()) events.push_back({rank.report.descriptor(), POLLIN, 0});
    for (const LinePump* stream : {&rank.out, &rank.err}) {
      const bool wanted = stream->is_open() && stream->outlet().is_idle();
      if (wanted) events.push_back({stream->descriptor(), POLLIN, 0});
    }
  }
  for (const Outlet* outlet : {&out_, &err_}) {
    if (!outlet->is_idle()) events.push_back({outlet->descriptor(), POLLOUT, 0});
  }
  if (::poll(events.data(), events.size(), timeout()) < 0 && errno != EINTR) {
    throw_system_error("wait for the ranks");
  }
  for (size_t i = 0; i < watched_.size(); ++i) {
    const bool is_watched = watched_[i].descriptor >= 0;  // what came before may have ended that
    if (is_watched && events[i].revents != 0) watched_[i].react();
  }
}

// In milliseconds, as poll takes it: -1 is for ever.
int Supervisor::timeout() const {
  const bool rest_to_read = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    const auto readable = [](const LinePump& p) { return p.is_open() && p.outlet().is_idle(); };
    return rank.end && (readable(rank.out) || readable(rank.err));
  });
  if (rest_to_read) return 0;
  if (!deadline_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - LaunchClock::now());
  constexpr int64_t kLongest = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLongest));
}

bool Supervisor::any_alive() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.runs(); });
}

bool Supervisor::is_over() const {
  if (any_alive()) return false;
  const bool all_read = std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.out.is_open() || rank.err.is_open();
  });
  return output_given_up_ || (all_read && out_.is_idle() && err_.is_idle());
}

void Supervisor::take_signals() {
  for (const int signal : signals_.take()) {
    if (signal == SIGCHLD) {
      reap();
    } else if (signal == SIGTSTP) {
      suspend();
    } else {
      relay(signal);
    }
  }
}

void Supervisor::relay(int signal) {
  relayed_.insert(signal);
  // With nobody left to tell, only output that nobody reads keeps the launcher here.
  output_given_up_ = !any_alive();
  send_to_all(signal);
}

// To the whole process group of each: a rank may have helpers.
void Supervisor::send_to_all(int signal) {
  for (const Rank& rank : ranks_) {
    if (rank.runs()) ::kill(-rank.pid, signal);
  }
}

void Supervisor::end_all_by(int signal) {
  for (Rank& rank : ranks_) {
    if (rank.runs()) rank.sent.insert(signal);
  }
  send_to_all(signal);
}

// The terminal's Ctrl-Z reaches the launcher alone.
void Supervisor::suspend() {
  send_to_all(SIGSTOP);
  signals_.stop_here();
  send_to_all(SIGCONT);
}

void Supervisor::read_reports() {
  for (Rank& rank : ranks_) {
    rank.report.read();
    if (!rank.report.is_open() && !rank.silent_since) rank.silent_since = LaunchClock::now();
  }
}

void Supervisor::reap() {
  for (Rank& rank : ranks_) {
    int status = 0;
    if (rank.runs() && ::waitpid(rank.pid, &status, WNOHANG) == rank.pid) note_end(rank, status);
  }
}

void Supervisor::note_end(Rank& rank, int status) {
  rank.report.read();
  rank.report.close();
  RankEnd end;
  end.status = status;
  end.report = rank.report.report();
  if (!end.report) end.report = report_of_program(rank, status);
  end.time = end.report ? end.report->time : time_of_silent_end(rank);
  // What this launcher kills is not the cause, except where it had said before that it failed.
  const bool was_ended_here =
      WIFSIGNALED(status) && rank.sent.contains(WTERMSIG(status)) && !tells_own_failure(end.report);
  end.told_to_end = was_ended_here || (told_to_end_ && end.time >= *told_to_end_);
  end.killed_by_relayed_signal = WIFSIGNALED(status) && relayed_.contains(WTERMSIG(status));
  if (breaks_the_run(end)) end_ranks(group_.until_term);
  rank.end = std::move(end);
}

// A rank's pipe closes before the rank can be waited for, and closer to the cause; a program that
// it becomes closes the pipe by that.
LaunchClock::time_point Supervisor::time_of_silent_end(const Rank& rank) const {
  return group_.words_of ? LaunchClock::now() : rank.silent_since.value_or(LaunchClock::now());
}

std::optional<RankReport> Supervisor::report_of_program(const Rank& rank, int status) const {
  if (!group_.words_of || !WIFEXITED(status)) return std::nullopt;
  return RankReport{group_.words_of(&rank - ranks_.data(), WEXITSTATUS(status)),
                    LaunchClock::now()};
}

void Supervisor::end_ranks(std::chrono::milliseconds patience) {
  if (!deadline_ && !told_to_end_) deadline_ = LaunchClock::now() + patience;
}

bool Supervisor::was_told_to_stop() const {
  return relayed_.contains(SIGTERM) || relayed_.contains(SIGINT);
}

std::string Supervisor::last_lines(int64_t local_rank) const {
  const Rank& rank = ranks_[static_cast<size_t>(local_rank)];
  const auto& lines = rank.err.last_lines().empty() ? rank.out.last_lines() : rank.err.last_lines();
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void Supervisor::pump_output() {
  const bool out_wanted = out_.is_idle();  // of each rank once, so that none starves the others
  const bool err_wanted = err_.is_idle();
  for (Rank& rank : ranks_) {
    if (out_wanted) rank.out.pump(rank.end.has_value());
    if (err_wanted) rank.err.pump(rank.end.has_value());
  }
  out_.write();
  err_.write();
  tell_of_lost_lines();
}

void Supervisor::tell_of_lost_lines() {
  const auto count = [](const char* stream, Outlet& outlet, LostRecords& lost) {
    lost.add(stream, outlet.take_lost());
    lost.report_if_due();
  };
  count("standard output", out_, lost_of_out_);
  count("standard error", err_, lost_of_err_);
}

// Written without waiting, as all is: a run that has ended waits for no reader.
void Supervisor::tell_of_lost_lines_in_the_end() {
  lost_of_out_.report_at_end();
  lost_of_err_.report_at_end();
  out_.write();
  err_.write();
}

void Supervisor::end_the_rest() {
  if (!deadline_ || LaunchClock::now() < *deadline_) return;
  if (told_to_end_) {
    end_all_by(SIGKILL);
    deadline_.reset();
    return;
  }
  told_to_end_ = LaunchClock::now();
  end_all_by(SIGTERM);
  send_to_all(SIGCONT);  // a stopped process takes no signal but this
  deadline_ = LaunchClock::now() + group_.until_kill;
}

}  // namespace phalanx
