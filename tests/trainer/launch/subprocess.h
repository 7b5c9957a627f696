// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// Far longer than anything in a test takes, on however busy a machine.
inline constexpr int kPatienceSeconds = 120;

/// A function in a process of its own, leading its process group, whose output is kept. It dies
/// with the test, or when patience is over.
class Subprocess {
 public:
  /// The function returns the process's exit code.
  explicit Subprocess(const std::function<int()>& body);
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;
  ~Subprocess();

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Waits until a signal has stopped the process.
  void wait_until_stopped() const;

  struct End {
    int exit_code = 0;  ///< 128 + signal for one that was killed.
    std::string out;
    std::string err;
  };
  End wait();

 private:
  Descriptor out_;
  Descriptor err_;
  pid_t pid_ = -1;
};

/// Tells values from forked processes to the one that made it, and waits for them there.
class Channel {
 public:
  Channel();
  void tell(int64_t value) const;
  /// The next value; throws std::runtime_error when patience is over or nobody can tell any more.
  int64_t hear();

 private:
  Pipe pipe_;
};

/// The end of any process, whoever its parent is.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid);
  /// Whether it ends before patience is over.
  bool ends() const;

 private:
  Descriptor process_;
};

/// The one-letter state of a process in /proc: 'T' is stopped. kGone: its parent knows of its end.
inline constexpr char kGone = '?';
char state_of(pid_t pid);
/// Waits for that state; throws std::runtime_error when patience is over.
void wait_for_state(pid_t pid, char state);

/// Open descriptors of this process.
int64_t count_descriptors();

}  // namespace phalanx
