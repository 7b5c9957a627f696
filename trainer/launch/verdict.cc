// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/verdict.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>
#include <string>

#include "trainer/base/said_by.h"

namespace phalanx {
namespace {

// From the best cause of a failed run to none.
enum class Kind { own_failure, returned_code, stopped, met_peers_end, told_to_end, success };

// A rank that was killed after it had reported a failure died of that failure.
bool was_killed(const RankEnd& end) {
  return WIFSIGNALED(end.status) && (!end.report || end.report->outcome.exit_code == 0);
}

Kind kind_of_report(const RankOutcome& outcome) {
  if (outcome.exit_code == 0) return Kind::success;
  if (outcome.caused_by_peer) return Kind::met_peers_end;
  if (!outcome.message.empty()) return Kind::own_failure;
  return outcome.exit_code > kSignalBase ? Kind::stopped : Kind::returned_code;
}

Kind kind_of(const RankEnd& end) {
  const bool reported = end.report && !was_killed(end);
  const Kind kind = reported                       ? kind_of_report(end.report->outcome)
                    : end.killed_by_relayed_signal ? Kind::stopped
                                                   : Kind::own_failure;
  return end.told_to_end && kind != Kind::success ? Kind::told_to_end : kind;
}

std::string killed_message(int signal, const std::string& host) {
  std::string text = "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) +
                     ") on " + host;
  if (signal == SIGKILL) {
    text += "; if nobody sent it, the kernel's out-of-memory killer did: see dmesg";
  }
  return text;
}

RankOutcome outcome_of_killed(int64_t rank, int signal, const std::string& host) {
  return {.exit_code = 1,
          .message = "rank " + std::to_string(rank) + " " + killed_message(signal, host),
          .rank = rank,
          .signal = signal};
}

RankOutcome outcome_of_silent(int64_t rank, int exit_code) {
  return {.exit_code = exit_code == 0 ? 1 : exit_code,
          .message = "rank " + std::to_string(rank) + " left with exit code " +
                     std::to_string(exit_code) + " without saying why",
          .rank = rank};
}

RankOutcome outcome_of(const RankEnd& end, int64_t rank, const std::string& host) {
  if (was_killed(end)) return outcome_of_killed(rank, WTERMSIG(end.status), host);
  if (!end.report) return outcome_of_silent(rank, WEXITSTATUS(end.status));
  RankOutcome outcome = end.report->outcome;
  if (outcome.message.empty()) return outcome;  // what it has printed says why
  outcome.message = said_by(rank, outcome.message);
  if (!outcome.rank) outcome.rank = rank;
  return outcome;
}

int signalled_exit_code(const RankEnd& end) {
  return was_killed(end) ? kSignalBase + WTERMSIG(end.status) : end.report->outcome.exit_code;
}

// A rank that was told to end and did so obeyed: it is no failure that it said no more.
bool ended_by_signal(const RankEnd& end) {
  if (kind_of(end) == Kind::stopped) return true;
  if (kind_of(end) != Kind::told_to_end) return false;
  if (was_killed(end)) return WTERMSIG(end.status) == SIGTERM;
  return end.report && kind_of_report(end.report->outcome) == Kind::stopped;
}

// What a rank said of its own failure; nullptr where it said nothing, or did not fail by itself.
const RankOutcome* own_words(const RankEnd& end) {
  const bool has_reported = end.report && !was_killed(end);
  return has_reported && kind_of(end) == Kind::own_failure ? &end.report->outcome : nullptr;
}

// A mistake that every rank finds, such as a wrong path, is nobody's in particular.
bool all_say_the_same(const std::vector<RankEnd>& ends) {
  std::vector<std::string> messages;
  for (const RankEnd& end : ends) {
    if (const RankOutcome* outcome = own_words(end)) messages.push_back(outcome->message);
  }
  return messages.size() > 1 && std::all_of(messages.begin(), messages.end(),
                                            [&](const std::string& m) { return m == messages[0]; });
}

}  // namespace

bool breaks_the_run(const RankEnd& end) {
  if (kind_of(end) == Kind::stopped) return was_killed(end);
  return kind_of(end) != Kind::success;
}

bool ended_as_told(const std::vector<RankEnd>& ends) {
  return std::ranges::all_of(ends, [](const RankEnd& end) {
    return kind_of(end) == Kind::told_to_end || kind_of(end) == Kind::success;
  });
}

std::optional<size_t> cause_of(const std::vector<RankEnd>& ends) {
  const auto cause =
      std::min_element(ends.begin(), ends.end(), [](const RankEnd& a, const RankEnd& b) {
        return kind_of(a) != kind_of(b) ? kind_of(a) < kind_of(b) : a.time < b.time;
      });
  if (cause == ends.end() || kind_of(*cause) == Kind::success) return std::nullopt;
  return static_cast<size_t>(std::distance(ends.begin(), cause));
}

RankOutcome verdict(const std::vector<RankEnd>& ends, int64_t first_rank, const std::string& host) {
  const auto place = cause_of(ends);
  if (!place) return {};
  const RankEnd& cause = ends[*place];
  if (ended_by_signal(cause)) return {signalled_exit_code(cause), ""};
  const RankOutcome* words = own_words(cause);
  if (words != nullptr && all_say_the_same(ends)) return *words;
  return outcome_of(cause, first_rank + static_cast<int64_t>(*place), host);
}

}  // namespace phalanx
