// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/abrupt_end.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <forward_list>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "trainer/base/bounded_text.h"
#include "trainer/base/exit_codes.h"
#include "trainer/launch/report.h"
#include "trainer/ranks/failures/call_within.h"

namespace phalanx {
namespace {

constexpr std::array kSignals{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
// Above what asking the ranks' store takes at the most, below what a launcher gives the others.
constexpr auto kPatience = std::chrono::milliseconds(4500);
constexpr size_t kHandlerStack = 1 << 16;

// What handlers see: of the one AbruptEnd that there is.
std::atomic<const LastWords*> words_now = nullptr;
std::atomic<int> report_pipe = -1;
std::atomic<pid_t> teller = 0;  // the thread that has the word
std::array<struct sigaction, kSignals.size()> earlier_actions;
std::terminate_handler earlier_terminate = nullptr;
// What handlers run on in the thread of AbruptEnd: a full stack has no room for one.
alignas(std::max_align_t) std::array<std::byte, kHandlerStack> handler_stack;
stack_t earlier_stack;

// Never freed.
const LastWords* keep(LastWords words) {
  static auto* const kept = new std::forward_list<LastWords>;
  return &kept->emplace_front(std::move(words));
}

[[noreturn]] void wait_for_end() {
  for (;;) ::pause();
}

// Whether nobody had it. Does not return where another thread is telling the end: what it says must
// not be cut off.
bool take_word() {
  pid_t nobody = 0;
  if (teller.compare_exchange_strong(nobody, ::gettid())) return true;
  if (nobody != ::gettid()) wait_for_end();
  return false;
}

using Line = BoundedText<1024>;

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// Async-signal-safe, with all it calls.
void tell_of_signal(const LastWords& words, int signal) {
  const SharedText::Copy activity = words.activity->read();
  Line message;
  if (activity.size > 0) message << activity.view() << ": ";
  const char* const name = ::sigdescr_np(signal);
  message << "was killed by signal " << signal << " (" << (name == nullptr ? "?" : name) << ")";
  if (signal == SIGABRT) message << ": the program gave up; what it printed before says why";
  const int pipe = report_pipe.load();
  if (pipe >= 0) return send_report_of_signal(pipe, signal, message.view());
  Line line;
  line << words.prefix << message.view() << "\n";
  write_to_stderr(line.view());
  if (words.record != nullptr) words.record(signal, message.view());
}

size_t place_of(int signal) {
  return static_cast<size_t>(std::find(kSignals.begin(), kSignals.end(), signal) -
                             kSignals.begin());
}

void on_signal(int signal) {
  const int error = errno;
  const LastWords* const words = words_now.load();
  if (words != nullptr && take_word()) tell_of_signal(*words, signal);  // or it is told already
  // It comes again once this handler is left, and ends the process as it would have.
  ::sigaction(signal, &earlier_actions[place_of(signal)], nullptr);
  ::raise(signal);
  errno = error;
}

std::string with_activity(const LastWords& words, const std::string& text) {
  const std::string activity = words.activity->text();
  return activity.empty() ? text : activity + ": " + text;
}

// Nothing where it fails, or takes too long.
std::optional<RankOutcome> asked(const LastWords& words, const std::exception_ptr& thrown) {
  try {
    // By value: what comes too late lives on beside this thread.
    return call_within<RankOutcome>(kPatience, [outcome_of = words.outcome_of, thrown] {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& error) {
        return outcome_of(error);
      }
    });
  } catch (...) {
    return std::nullopt;
  }
}

RankOutcome outcome_of_terminate(const LastWords& words) {
  std::string what = "std::terminate was called";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      if (auto outcome = asked(words, thrown)) return *outcome;
      what = "no thread caught this exception: " + std::string(error.what());
    } catch (...) {
      what = "no thread caught an exception that is no std::exception";
    }
  }
  return {.exit_code = kFailure, .message = with_activity(words, what)};
}

void tell_of_terminate(const LastWords& words) {
  const RankOutcome outcome = outcome_of_terminate(words);
  take_word();
  const int pipe = report_pipe.load();
  if (pipe < 0) {
    words.tell(outcome);
    if (words.record != nullptr) words.record(SIGABRT, outcome.message);
    return;
  }
  Descriptor descriptor(pipe);
  send_report(descriptor, {outcome, LaunchClock::now()});
  descriptor.release();
}

void on_terminate() {
  thread_local bool is_here = false;  // a second exception on the way
  const LastWords* const words = words_now.load();
  try {
    if (words != nullptr && !std::exchange(is_here, true)) tell_of_terminate(*words);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the handler of SIGABRT tells it, in less words
  }
  std::abort();
}

}  // namespace

AbruptEnd::AbruptEnd(LastWords words) {
  if (words_now.load() != nullptr) throw std::logic_error("a second AbruptEnd");
  teller = 0;
  words_now = keep(std::move(words));
  earlier_terminate = std::set_terminate(on_terminate);
  const stack_t stack{.ss_sp = handler_stack.data(), .ss_flags = 0, .ss_size = kHandlerStack};
  ::sigaltstack(&stack, &earlier_stack);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &earlier_actions[i]);
  }
}

AbruptEnd::~AbruptEnd() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &earlier_actions[i], nullptr);
  }
  ::sigaltstack(&earlier_stack, nullptr);
  std::set_terminate(earlier_terminate);
  words_now = nullptr;
}

void report_abrupt_end_to(const Descriptor& pipe) { report_pipe = pipe.number(); }

bool has_report_pipe() { return report_pipe.load() >= 0; }

void take_the_word() { take_word(); }

}  // namespace phalanx
