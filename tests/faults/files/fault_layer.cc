// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/files/fault_layer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

namespace file_faults {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

Rule parse_rule(const std::string& text) {
  const std::vector<std::string> parts = split(text, '|');
  constexpr std::size_t kParts = 5;
  if (parts.size() != kParts) std::abort();
  return {.moment = parts[0],
          .action = parts[1],
          .who = parts[2],
          .name = parts[3],
          .occurrence = std::strtol(parts[4].c_str(), nullptr, 10),
          .and_later = parts[4].back() == '+'};
}

// Without the numbers of steps, processes and files, and the dash before them.
std::string without_numbers(const std::string& path) {
  std::string plain;
  for (const char c : path) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      plain += c;
    } else if (plain.ends_with('-')) {
      plain.pop_back();
    }
  }
  // The rest of the name is the host's.
  const std::size_t events = plain.find("/events.out.");
  return events == std::string::npos ? plain : plain.substr(0, events) + "/events";
}

// write(2) is one of the calls that are watched.
void write_raw(int file, std::string_view text) {
  while (!text.empty()) {
    const long written = ::syscall(SYS_write, file, text.data(), text.size());
    if (written < 0) std::abort();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

int open_raw(const std::string& path) {
  const long file = ::syscall(SYS_openat, AT_FDCWD, path.c_str(),
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) std::abort();
  return static_cast<int>(file);
}

// Only a rank has a launcher: who else started this process is not to be touched.
void kill_launcher() {
  if (std::getenv("RANK") == nullptr) std::abort();
  ::kill(::getppid(), SIGKILL);
}

/// The journal's order is that of the changes: one process at a time makes one.
class OneAtATime {
 public:
  explicit OneAtATime(int journal) : journal_(journal) {
    while (journal_ >= 0 && ::flock(journal_, LOCK_EX) != 0) continue;
  }
  ~OneAtATime() {
    if (journal_ >= 0) ::flock(journal_, LOCK_UN);
  }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  int journal_;
};

}  // namespace

FaultLayer& FaultLayer::instance() {
  static FaultLayer& layer = *new FaultLayer;  // files are written to the process's last moment
  return layer;
}

FaultLayer::FaultLayer()
    : root_(variable("FILE_FAULTS_ROOT")),
      trace_folder_(variable("FILE_FAULTS_TRACE")),
      journal_path_(variable("FILE_FAULTS_JOURNAL")),
      lock_error_(std::atoi(variable("FILE_FAULTS_LOCKS").c_str())) {
  for (const std::string& text : split(variable("FILE_FAULTS_RULES"), '\n')) {
    if (!text.empty()) rules_.push_back(parse_rule(text));
  }
}

bool FaultLayer::watches(std::string_view path) const {
  return !root_.empty() && path.starts_with(root_) &&
         (path.size() == root_.size() || path[root_.size()] == '/');
}

// A rank is a fork of its launcher, whose files and counts are not its own.
void FaultLayer::begin_process() {
  if (process_ == ::getpid()) return;
  process_ = ::getpid();
  occurrences_.clear();
  const char* rank = std::getenv("RANK");
  who_ = rank == nullptr ? "main" : rank;
  if (!trace_folder_.empty()) trace_ = open_raw(trace_folder_ + "/" + who_);
  if (!journal_path_.empty()) journal_ = open_raw(journal_path_);
}

std::string FaultLayer::relative(std::string_view path) const {
  if (!watches(path)) return {};
  return path.size() == root_.size() ? "." : std::string(path.substr(root_.size() + 1));
}

std::string FaultLayer::name_of(const Operation& operation) const {
  std::string name = std::string(operation.kind) + " " + without_numbers(relative(operation.path));
  if (!operation.other.empty()) name += " " + without_numbers(relative(operation.other));
  return name;
}

const Rule* FaultLayer::rule_for(const std::string& name, long occurrence,
                                 std::string_view moment) const {
  for (const Rule& rule : rules_) {
    const bool now =
        rule.occurrence == occurrence || (rule.and_later && occurrence > rule.occurrence);
    if (now && rule.moment == moment && rule.who == who_ && rule.name == name) return &rule;
  }
  return nullptr;
}

namespace {

// 15 of "signal-15"; 0 of another action.
int number_behind(std::string_view prefix, const std::string& action) {
  return action.starts_with(prefix) ? std::atoi(action.c_str() + prefix.size()) : 0;
}

// True if the operation is to fail, with errno set.
bool is_failed_by(const Rule* rule) {
  if (rule == nullptr) return false;
  if (rule->action == "kill-launcher" || rule->action == "kill-all") kill_launcher();
  if (rule->action == "kill" || rule->action == "kill-all") ::kill(::getpid(), SIGKILL);
  if (rule->action.starts_with("kill")) return false;
  if (const int signal = number_behind("signal-launcher-", rule->action)) {
    ::kill(::getppid(), signal);
    // Until it is passed on: it interrupts this, the only call that does not go on after it.
    const timespec longest{.tv_sec = 10, .tv_nsec = 0};
    ::nanosleep(&longest, nullptr);
    return false;
  }
  if (const int signal = number_behind("signal-", rule->action)) {
    ::kill(::getpid(), signal);
    return false;
  }
  errno = std::atoi(rule->action.c_str());
  return errno != 0;
}

}  // namespace

long FaultLayer::perform_once(const Operation& operation, const std::string& name,
                              long occurrence) {
  if (is_failed_by(rule_for(name, occurrence, "before"))) return -1;
  const Rule* half = operation.bytes > 1 ? rule_for(name, occurrence, "half") : nullptr;
  const long result = operation.call(half != nullptr ? operation.bytes / 2 : operation.bytes);
  is_failed_by(half);
  return result;
}

long FaultLayer::perform(const Operation& operation,
                         const std::function<Change(long result)>& changed) {
  const std::lock_guard lock(mutex_);
  begin_process();
  const std::string name = name_of(operation);
  const long occurrence = ++occurrences_[name];
  const OneAtATime alone(journal_);
  const long result = perform_once(operation, name, occurrence);
  const int error = errno;
  if (result >= 0) note(operation, changed(result));
  errno = error;
  trace(operation, name, occurrence, result);
  is_failed_by(rule_for(name, occurrence, "after"));
  errno = error;
  return result;
}

void FaultLayer::trace(const Operation& operation, const std::string& name, long occurrence,
                       long result) const {
  if (trace_ < 0) return;
  write_raw(trace_, name + "\t" + std::to_string(occurrence) + "\t" +
                        std::to_string(result < 0 ? errno : 0) + "\t" + relative(operation.path) +
                        "\t" + relative(operation.other) + "\n");
}

void FaultLayer::note(const Operation& operation, const Change& change) const {
  if (journal_ < 0 || change.kind.empty()) return;
  std::string record = std::string(change.kind) + "\t" + who_ + "\t" +
                       std::to_string(change.inode) + "\t" + std::to_string(change.offset) + "\t" +
                       std::to_string(change.data.size()) + "\t" + relative(operation.path) + "\t" +
                       relative(operation.other) + "\n";
  record += change.data;
  write_raw(journal_, record);
}

}  // namespace file_faults
