// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/node_agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "trainer/base/exit_codes.h"
#include "trainer/base/next_line.h"
#include "trainer/base/stop_reason.h"
#include "trainer/base/take_until.h"
#include "trainer/base/unix_time.h"
#include "trainer/base/utf8.h"
#include "trainer/launch/agent/agent_environment.h"
#include "trainer/launch/agent/agent_lines.h"
#include "trainer/launch/agent/agent_screen.h"
#include "trainer/launch/agent/joining.h"
#include "trainer/launch/agent/meeting.h"
#include "trainer/launch/agent/program.h"
#include "trainer/launch/agent/rank_logs.h"
#include "trainer/launch/agent/remote_nodes.h"
#include "trainer/launch/signal_relay.h"
#include "trainer/launch/supervisor.h"
#include "trainer/launch/threads.h"
#include "trainer/launch/verdict.h"

namespace phalanx {
namespace {

using State = AgentStatus::State;
using Kind = Order::Kind;

int64_t unix_milliseconds() { return static_cast<int64_t>(1000 * unix_time()); }

/// One launch of an agent.
class AgentRun {
 public:
  using Settings = AgentSettings;

  /// `runs_program`: the ranks become programs.
  AgentRun(Settings settings, Launched launched, const RankMain& rank_main, bool runs_program,
           std::function<void(const RankOutcome&)> react)
      : settings_(std::move(settings)),
        launched_(std::move(launched)),
        rank_main_(rank_main),
        runs_program_(runs_program),
        react_(std::move(react)),
        logs_(settings_.logs, settings_.run_id, runs_program),
        meeting_(settings_, launched_),
        remote_nodes_(settings_.remote_nodes, settings_.close_timeout, [this] {
          signals_.leave_to_child();
          meeting_.leave_to_child();
        }) {
    status_.node = settings_.node_name;
    status_.version = settings_.version;
    status_.ranks = settings_.ranks;
    status_.node_rank = settings_.node_rank.value_or(-1);
    status_.min_nodes = settings_.min_nodes;
    status_.max_nodes = settings_.max_nodes;
  }

  RankOutcome run() {
    try {
      take_part();
    } catch (const LostMeeting& error) {
      // The first node notes how the run has ended, as long as it is there.
      return with_end_of_remote_nodes(
          {.exit_code = kFailure, .message = error.what(), .told_elsewhere = !meeting_.serves()});
    }
    return with_end_of_remote_nodes(outcome());
  }

 private:
  void take_part() {
    tell(State::joining);
    while (order_.kind != Kind::end) {
      if (must_run()) {
        run_round();
      } else {
        wait_for_news();
      }
      if (stopped_by_ && is_needed_by_nobody()) break;
      if (wants_next_round()) prepare_for_next_round();
    }
    tell(State::left);
  }

  // ---- What to do next

  bool must_run() const {
    return !stopped_by_ && order_.kind == Kind::run && order_.round > status_.round &&
           group_rank().has_value();
  }

  // The others of a round learn of a signal, and end; before the first one they wait for another
  // node.
  bool is_needed_by_nobody() const { return !meeting_.serves() && !group_rank(); }

  // Its ranks have ended, perhaps later than the others went on.
  bool wants_next_round() const {
    if (stopped_by_ || status_.state == State::waiting || order_.kind == Kind::end) return false;
    return order_.kind == Kind::gather || order_.round > status_.round;
  }

  std::optional<int64_t> group_rank() const {
    const auto found = std::ranges::find(order_.members, meeting_.number(), &Member::agent);
    if (found == order_.members.end()) return std::nullopt;
    return found - order_.members.begin();
  }

  void wait_for_news() {
    std::array<pollfd, 3> news{pollfd{signals_.descriptor(), POLLIN, 0},
                               pollfd{meeting_.descriptor(), POLLIN, 0},
                               pollfd{lost_host_ ? -1 : remote_nodes_.descriptor(), POLLIN, 0}};
    const int found = ::poll(news.data(), news.size(), kPatience);
    if (found < 0 && errno != EINTR) throw_system_error("wait for other agents");
    take_orders();
    if (found == 0) say_what_is_awaited();
    answer();
    take_signals();
    if (news[2].revents != 0 && takes_loss_of_host()) {
      stop();
    }
  }

  // While no ranks run.
  void stop() {
    status_.end = {.outcome = *stopped_by_, .time = unix_milliseconds(), .may_restart = false};
    status_.is_told = true;
    tell(State::stopped);
  }

  void take_orders() {
    for (Order& order : meeting_.take()) {
      take(std::move(order));
      if (order_.kind == Kind::halt) halt_before_start();
    }
  }

  void take(Order order) {
    order_ = std::move(order);
    screen_.tell_news(order_);
  }

  // Whether the launch can go on with this node, as it is asked before it counts.
  void answer() {
    if (status_.state != State::joining && status_.state != State::waiting) return;
    const auto asked = order_.asked.find(meeting_.number());
    if (asked == order_.asked.end() || status_.answered == asked->second) return;
    try {
      status_.unfit = launched_.why_not(meeting_.facts(), asked->second);
    } catch (const std::exception& error) {
      status_.unfit = error.what();
    }
    status_.answered = asked->second;
    tell(State::waiting);
  }

  // A round may be over before this agent has heard of it.
  void halt_before_start() {
    if (order_.round <= status_.round || !group_rank() || status_.state != State::waiting) return;
    status_.round = order_.round;
    tell(State::halted);
  }

  void prepare_for_next_round() {
    if (order_.delay > 0) screen_.starts_again(order_);
    RankOutcome outcome = order_.outcome;
    outcome.told_elsewhere = group_rank().value_or(1) != 0;
    if (react_) react_(outcome);
    tell(State::waiting);
  }

  void take_signals() {
    for (const int signal : signals_.take()) {
      if (signal == SIGTSTP) {
        signals_.stop_here();
      } else if (signal != SIGCHLD && signal != SIGUSR1) {
        stopped_by_ = {.exit_code = kSignalBase + signal, .message = {}};
        stop();
      }
    }
  }

  void say_what_is_awaited() {
    if (status_.state != State::waiting && status_.state != State::joining) return;
    if (meeting_.number() < 0) {
      screen_.waits_for_first_node(meeting_.why_waiting());
    } else {
      screen_.waits(order_, status_.state, meeting_.why_waiting());
    }
  }

  void tell(State state) {
    status_.state = state;
    meeting_.tell(status_);
  }

  // ---- A round

  void run_round() {
    status_.round = order_.round;
    screen_.runs();
    StopReason::clear();
    logs_.begin_attempt(order_.round - 1, settings_.ranks);
    NodePlace place = place_in(order_, *group_rank());
    place.job = meeting_.facts().job;
    tell_lines(place.group_rank);
    screen_.starts(place);
    Supervisor supervisor(group_at(place), signals_);
    supervisor.watch(meeting_.descriptor(), [&] { heed(supervisor); });
    supervisor.watch(remote_nodes_.descriptor(), [&] { heed_remote_nodes(supervisor); });
    supervisor.start([&](const Environment& environment) {
      meeting_.leave_to_child();
      remote_nodes_.leave_to_child();
      export_agent_variables(settings_, place, environment,
                             runs_program_ ? logs_.error_file(environment.local_rank) : "");
      return rank_main_(environment);
    });
    tell(State::running);
    const std::vector<RankEnd> ends = supervisor.wait();
    if (lost_) std::rethrow_exception(std::exchange(lost_, nullptr));
    conclude_round(supervisor, ends, place);
  }

  // For messages of this process and of its ranks.
  void tell_lines(int64_t group_rank) const {
    std::vector<int64_t> ranks;
    for (const Member& member : order_.members) ranks.push_back(member.ranks);
    const auto lines = lines_of_launch(settings_, ranks, group_rank);
    if (!lines.empty()) export_launch_lines(lines);
  }

  RankGroup group_at(const NodePlace& place) {
    RankGroup group{.count = settings_.ranks,
                    .is_whole_world = false,
                    .until_term = patience(),
                    .until_kill = settings_.close_timeout};
    group.first = {.rank = place.first_rank,
                   .world_size = place.world_size,
                   .master_addr = settings_.host,
                   .master_port = settings_.port,
                   .agent_store = true,
                   .restart_count = place.restart_count};
    group.streams = [this, first = place.first_rank](int64_t local_rank) {
      return logs_.streams(first + local_rank, local_rank);
    };
    if (runs_program_) {
      group.words_of = [this](int64_t local_rank, int exit_code) {
        return words_of_program(local_rank, exit_code);
      };
    }
    return group;
  }

  RankOutcome words_of_program(int64_t local_rank, int exit_code) const {
    if (exit_code == 0) return {};
    const std::string words = message_of_program(logs_.error_file(local_rank));
    const std::string message(first_bytes(words, kLongestMessage));
    return {
        .exit_code = exit_code,
        .message = message.empty() ? fmt::format("left with exit code {}", exit_code) : message};
  }

  // Ranks that wait for lost ones notice it, and say why. Programs are ended at once, as by
  // torchrun.
  std::chrono::milliseconds patience() const {
    return runs_program_ ? std::chrono::milliseconds(0) : RankGroup().until_term;
  }

  // While ranks run. Nothing may be thrown here: they would be killed without time to save.
  void heed(Supervisor& supervisor) {
    if (lost_) return;
    try {
      for (Order& order : meeting_.take()) take(std::move(order));
    } catch (const std::exception& error) {
      lost_ = std::current_exception();
      StopReason::set(error.what());
      supervisor.stop_watching();
      supervisor.end_ranks(std::chrono::milliseconds(0));
      return;
    }
    // Another round than this one: this node was lost for a while, and the others have gone on.
    if (order_.kind == Kind::run && order_.round == status_.round) return;
    was_halted_ = true;
    const bool has_failed = !order_.outcome.message.empty();  // else it makes room for more nodes
    if (!has_failed) StopReason::set(order_.reason);
    supervisor.end_ranks(has_failed ? patience() : std::chrono::milliseconds(0));
  }

  // The others' ranks end with those of this node, where they can.
  void heed_remote_nodes(Supervisor& supervisor) {
    if (!takes_loss_of_host()) return;
    supervisor.stop_watching();
    supervisor.end_ranks(std::chrono::milliseconds(0));
  }

  void conclude_round(const Supervisor& supervisor, const std::vector<RankEnd>& ends,
                      const NodePlace& place) {
    RankOutcome outcome = verdict(ends, place.first_rank, settings_.node_name);
    const bool was_halted = std::exchange(was_halted_, false);
    const bool is_told_to_stop = supervisor.was_told_to_stop();
    status_.end = {.outcome = outcome, .time = time_of_cause(ends), .may_restart = false};
    status_.is_told = is_told_to_stop || lost_host_;
    if (lost_host_) {
      status_.end.outcome = *stopped_by_;
      return tell(State::stopped);
    }
    if (is_told_to_stop) stopped_by_ = {.exit_code = outcome.exit_code, .message = {}};
    if (outcome.exit_code == 0) return tell(state_after_success(ends, was_halted, is_told_to_stop));
    const bool is_stopped = outcome.message.empty() && outcome.exit_code > kSignalBase;
    const bool has_own_cause =
        !outcome.message.empty() && !outcome.caused_by_peer && !ended_as_told(ends);
    // After the loss of another node: ranks that have obeyed a signal to it, and saved, before this
    // node was told to end them.
    const bool obeyed_before = is_stopped && !order_.outcome.message.empty() &&
                               std::ranges::none_of(ends, &RankEnd::told_to_end);
    if (was_halted && !is_told_to_stop && !has_own_cause && !obeyed_before) {
      return tell(State::halted);
    }
    if (runs_program_ && outcome.signal != 0) outcome.exit_code = kSignalBase + outcome.signal;
    if (!is_stopped) outcome.message += what_it_printed(supervisor, outcome, place);
    const bool users = outcome.exit_code == kUsersMistake && !runs_program_;
    status_.end.outcome = outcome;
    status_.end.may_restart = !users;
    tell(is_stopped || is_told_to_stop ? State::stopped : State::failed);
  }

  // Ranks that save and leave with 0 when they are asked to end have not finished.
  static State state_after_success(const std::vector<RankEnd>& ends, bool was_halted,
                                   bool is_told_to_stop) {
    if (is_told_to_stop) return State::stopped;
    const bool ended_early = was_halted && std::ranges::any_of(ends, &RankEnd::told_to_end);
    return ended_early ? State::halted : State::finished;
  }

  // When the rank ended that is the cause: others of this node may take long to.
  static int64_t time_of_cause(const std::vector<RankEnd>& ends) {
    const auto cause = cause_of(ends);
    if (!cause) return unix_milliseconds();
    const auto since = LaunchClock::now() - ends[*cause].time;
    return unix_milliseconds() -
           std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  }

  // What helps to find out why a rank failed that did not say so.
  std::string what_it_printed(const Supervisor& supervisor, const RankOutcome& outcome,
                              const NodePlace& place) const {
    if (!outcome.rank) return {};
    const int64_t local_rank = *outcome.rank - place.first_rank;
    if (local_rank < 0 || local_rank >= settings_.ranks) return {};  // another node's
    std::string text;
    for (const bool of_stderr : {true, false}) {
      const auto file = logs_.file_of(local_rank, of_stderr);
      if (!file.empty()) text += "\n  its log: " + file.string();
    }
    if (!runs_program_) return text;
    const std::string lines = supervisor.last_lines(local_rank);
    return lines.empty() ? text : text + "\n  its last lines:\n" + indented(lines);
  }

  static std::string indented(std::string_view lines) {
    std::string text;
    while (!lines.empty()) {
      text += text.empty() ? "    " : "\n    ";
      text += take_until(lines, '\n');
    }
    return text;
  }

  // ---- The end

  RankOutcome outcome() const {
    if (order_.kind != Kind::end) {
      RankOutcome outcome = stopped_by_.value_or(RankOutcome{});
      // A node that leaves, and is no member any more: the others go on, and note how its ranks'
      // round has ended.
      outcome.told_elsewhere = outcome.message.empty();
      return outcome;
    }
    RankOutcome outcome = order_.outcome;
    outcome.told_elsewhere = group_rank().value_or(1) != 0;
    if (settings_.is_remote_node) outcome.message.clear();
    return outcome;
  }

  // ---- Nodes that this one has started

  // Whether one was lost, so that the run cannot go on.
  bool takes_loss_of_host() {
    const auto failure = remote_nodes_.take_failure();
    if (!failure || order_.kind == Kind::end) return false;
    lost_host_ = failure;
    stopped_by_ = {.exit_code = kFailure, .message = *failure};
    return true;
  }

  // A host that was lost is the cause, whatever those say that have ended because of it.
  RankOutcome with_end_of_remote_nodes(RankOutcome outcome) {
    const auto lost = remote_nodes_.finish(outcome.exit_code);
    if (!lost_host_) lost_host_ = lost;
    if (!lost_host_) return outcome;
    return {
        .exit_code = kFailure, .message = *lost_host_, .told_elsewhere = outcome.told_elsewhere};
  }

  static constexpr int kPatience = 5000;  // milliseconds until it says what it waits for
  static constexpr size_t kLongestMessage = 1 << 16;

  Settings settings_;
  Launched launched_;
  const RankMain& rank_main_;
  bool runs_program_;
  std::function<void(const RankOutcome&)> react_;
  RankLogs logs_;
  SignalRelay signals_;
  AgentScreen screen_{settings_};
  Meeting meeting_;
  RemoteNodes remote_nodes_;
  AgentStatus status_;
  Order order_;
  std::optional<RankOutcome> stopped_by_;  ///< A signal to this node, or a lost host.
  std::optional<std::string> lost_host_;   ///< One that this node has started, and why.
  std::exception_ptr lost_;                ///< The other agents, while ranks ran.
  bool was_halted_ = false;
};

}  // namespace

NodeAgent::NodeAgent(AgentSettings settings) : settings_(std::move(settings)) {}

std::optional<int64_t> NodeAgent::processes() const {
  return settings_.max_nodes == 1 ? std::optional(settings_.ranks) : std::nullopt;
}

void NodeAgent::ask_before_joining(Launched launched) { launched_ = std::move(launched); }

void NodeAgent::when_attempt_fails(const std::function<void(const RankOutcome&)>& react) {
  react_ = react;
}

RankOutcome NodeAgent::launch(const RankMain& rank_main) {
  require_single_thread();
  if (settings_.min_nodes < settings_.max_nodes) NextLine::leave_to_launcher();
  return AgentRun(settings_, launched_, rank_main, /*runs_program=*/false, react_).run();
}

RankOutcome NodeAgent::launch_program(const std::vector<std::string>& words) {
  require_program(words.front());
  const bool is_elastic = settings_.min_nodes < settings_.max_nodes;
  return AgentRun(settings_, launched_program(words, is_elastic),
                  program_main(words, settings_.numa_binding), /*runs_program=*/true, react_)
      .run();
}

}  // namespace phalanx
