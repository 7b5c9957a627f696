// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/remote_nodes_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "trainer/base/exit_codes.h"
#include "trainer/launch/agent/packets.h"
#include "trainer/launch/agent/remote_end.h"
#include "trainer/launch/output_pump.h"
#include "trainer/launch/rank_child.h"
#include "trainer/launch/signal_relay.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

// A launch that ends with the run may end a moment before the agent of this node knows of it.
constexpr std::chrono::seconds kMoment{2};
constexpr int kTick = 100;  // milliseconds
constexpr int kNotStarted = 127;
constexpr int kErrorOfSsh = 255;

/// A command that runs, as this process sees it.
struct Command {
  const RemoteNode* node = nullptr;
  pid_t pid = 0;
  Descriptor input;
  LinePump out;
  LinePump err;
  std::optional<int> exit_code = {};
  int signal = 0;  ///< That killed it here; 0: none.
  Clock::time_point end = {};
  bool has_told = false;  ///< The agent of its end, or there is nothing to tell.

  bool runs() const { return !exit_code; }
  /// Something is left to be read or told.
  bool ends() const { return exit_code && (!has_told || out.is_open() || err.is_open()); }
};

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

// ssh leaves alike where it finds no way to the host, and where the launch there was killed.
std::string how_it_ended(const Command& command) {
  const std::string& host = command.node->host;
  const std::string& program = command.node->command.front();
  if (command.signal != 0) {
    return fmt::format(
        "the launch on host '{}' is lost: {}, by which it was started, was killed here by signal "
        "{} ({})",
        host, program, command.signal, ::strsignal(command.signal));
  }
  if (*command.exit_code == kErrorOfSsh) {
    return fmt::format(
        "host '{}' is not reached, or the launch there was killed: {} left with exit code {}", host,
        program, kErrorOfSsh);
  }
  return fmt::format("the launch on host '{}' left with exit code {} before the run did", host,
                     *command.exit_code);
}

std::string message_of(const Command& command) {
  std::string text = how_it_ended(command);
  const auto& lines = command.err.last_lines();
  if (!lines.empty()) text += "\n  its last lines:";
  for (const std::string& line : lines) {
    text += "\n    " + line.substr(0, line.find('\r'));  // which ssh writes as well
  }
  return text;
}

// A session of its own keeps it from asking for a password and from the terminal's signals.
[[noreturn]] void become_command(const std::vector<std::string>& words, const Descriptor& input,
                                 const Descriptor& out, const Descriptor& err) {
  ::setsid();
  ::dup2(input.number(), STDIN_FILENO);
  ::dup2(out.number(), STDOUT_FILENO);
  ::dup2(err.number(), STDERR_FILENO);
  // What this program ignores, another one may rely on.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  fmt::print(stderr, "cannot start '{}': {}\n", words.front(),
             std::generic_category().message(errno));
  std::fflush(stderr);
  ::_exit(kNotStarted);
}

class RemoteNodesProcess {
 public:
  RemoteNodesProcess(std::chrono::milliseconds patience, Descriptor agent)
      : patience_(patience), agent_(std::move(agent)), out_(STDOUT_FILENO), err_(STDERR_FILENO) {}

  void start(const std::vector<RemoteNode>& nodes) {
    for (const RemoteNode& node : nodes) start(node);
  }

  void tell_agent(const RemoteEnd& end) { write_packet(agent_, to_packet(end)); }

  void run() {
    while (!is_over()) {
      wait();
      reap();
      hear_agent();
      pump();
      tell_of_ends();
      kill_those_that_stay();
    }
  }

 private:
  void start(const RemoteNode& node) {
    Pipe input = make_pipe();
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    ::fcntl(input.read_end.number(), F_SETFL, 0);  // a program may not expect that it never waits
    const pid_t launcher = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      die_with_launcher(launcher);
      signals_.leave_to_child();
      become_command(node.command, input.read_end, out.write_end, err.write_end);
    }
    if (pid < 0) throw_system_error("start the command for host '" + node.host + "'");
    commands_.push_back({.node = &node,
                         .pid = pid,
                         .input = std::move(input.write_end),
                         .out = LinePump(std::move(out.read_end), {}, out_),
                         .err = LinePump(std::move(err.read_end), {}, err_)});
  }

  bool any_runs() const { return std::ranges::any_of(commands_, &Command::runs); }

  bool is_over() const {
    const bool is_all_read = std::ranges::none_of(
        commands_, [](const Command& each) { return each.out.is_open() || each.err.is_open(); });
    const bool is_all_shown = is_all_read && out_.is_idle() && err_.is_idle();
    return is_asked_to_end_ && !any_runs() && (is_all_shown || is_too_late_);
  }

  void wait() {
    std::vector<pollfd> events{{signals_.descriptor(), POLLIN, 0},
                               {is_asked_to_end_ ? -1 : agent_.number(), POLLIN, 0}};
    for (const Command& command : commands_) {
      for (const LinePump* stream : {&command.out, &command.err}) {
        const bool is_wanted = stream->is_open() && stream->outlet().is_idle();
        if (is_wanted) events.push_back({stream->descriptor(), POLLIN, 0});
      }
    }
    for (const Outlet* outlet : {&out_, &err_}) {
      if (!outlet->is_idle()) events.push_back({outlet->descriptor(), POLLOUT, 0});
    }
    const bool waits_for_time = is_asked_to_end_ || std::ranges::any_of(commands_, &Command::ends);
    ::poll(events.data(), events.size(), waits_for_time ? kTick : -1);
  }

  void reap() {
    for ([[maybe_unused]] const int signal : signals_.take()) continue;
    for (Command& command : commands_) {
      int status = 0;
      if (!command.runs() || ::waitpid(command.pid, &status, WNOHANG) != command.pid) continue;
      command.exit_code = exit_code_of(status);
      command.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      command.end = Clock::now();
      command.has_told = is_asked_to_end_;
    }
  }

  void hear_agent() {
    std::string packet;
    if (is_asked_to_end_ || read_packet(agent_, packet) != ReadResult::end) return;
    is_asked_to_end_ = true;
    deadline_ = Clock::now() + patience_;
    for (Command& command : commands_) command.input.close();
  }

  void pump() {
    const bool is_out_wanted = out_.is_idle();
    const bool is_err_wanted = err_.is_idle();
    for (Command& command : commands_) {
      if (is_out_wanted) command.out.pump(!command.runs());
      if (is_err_wanted) command.err.pump(!command.runs());
    }
    out_.write();
    err_.write();
  }

  void tell_of_ends() {
    for (Command& command : commands_) {
      const bool has_more_lines = command.err.is_open() && err_.is_idle();
      if (command.runs() || command.has_told || has_more_lines) continue;
      if (!is_asked_to_end_ && Clock::now() < command.end + kMoment) continue;
      command.has_told = true;
      tell_agent({.exit_code = *command.exit_code, .message = message_of(command)});
    }
  }

  void kill_those_that_stay() {
    if (!is_asked_to_end_ || is_too_late_ || Clock::now() < deadline_) return;
    is_too_late_ = true;
    for (const Command& command : commands_) {
      if (command.runs()) ::kill(-command.pid, SIGKILL);
    }
  }

  std::chrono::milliseconds patience_;
  Descriptor agent_;
  SignalRelay signals_;  ///< It needs SIGCHLD alone: the agent decides what others mean.
  Outlet out_;
  Outlet err_;
  std::vector<Command> commands_;
  bool is_asked_to_end_ = false;
  bool is_too_late_ = false;
  Clock::time_point deadline_;
};

}  // namespace

void run_remote_nodes(const std::vector<RemoteNode>& nodes, std::chrono::milliseconds patience,
                      Descriptor agent) {
  ::setpgid(0, 0);
  RemoteNodesProcess process(patience, std::move(agent));
  try {
    process.start(nodes);
  } catch (const std::exception& error) {
    process.tell_agent({.exit_code = kFailure, .message = error.what()});
  }
  process.run();
  ::_exit(0);
}

}  // namespace phalanx
