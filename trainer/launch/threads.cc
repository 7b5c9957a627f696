// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/threads.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

namespace phalanx {
namespace {

constexpr unsigned long kExiting = 0x4;  // PF_EXITING of the kernel's include/linux/sched.h

// Whether a thread has left the program for good. Those who wait for its end are woken in the midst
// of the kernel's do_exit: after PF_EXITING is set, and before the thread is taken off the list.
// The fields of its `stat` are those of proc(5); the name before them may hold anything.
bool has_ended(const std::filesystem::directory_entry& task) {
  std::ifstream file(task.path() / "stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return true;  // it has vanished right now
  std::istringstream fields(stat.substr(name_end + 1));
  char state = 0;
  long parent = 0, group = 0, session = 0, terminal = 0, foreground = 0;
  unsigned long flags = 0;
  fields >> state >> parent >> group >> session >> terminal >> foreground >> flags;
  return state == 'Z' || state == 'X' || (flags & kExiting) != 0;
}

#ifdef __SANITIZE_THREAD__
constexpr int64_t kExpectedThreads = 2;  // one is the sanitizer's own
#else
constexpr int64_t kExpectedThreads = 1;
#endif

}  // namespace

int64_t count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::count_if(begin(tasks), end(tasks), [](const auto& task) { return !has_ended(task); });
}

void require_single_thread() {
  const int64_t threads = count_threads();
  if (threads <= kExpectedThreads) return;
  throw std::logic_error("ranks are forked from a process of one thread, but there are " +
                         std::to_string(threads) +
                         ": launch before anything starts threads (LibTorch's operations, CUDA, "
                         "data loaders), or start the ranks with torchrun");
}

}  // namespace phalanx
