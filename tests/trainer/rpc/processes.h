// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>

#include "trainer/parallel/ranks_of_store.h"
#include "trainer/rpc/agent.h"
#include "trainer/tensors/error_text.h"

namespace phalanx::rpc {

/// For checks inside of processes, where GoogleTest's do not reach the test: throws.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("does not hold: " + what);
}

/// The text of what `action` throws; throws where it does not.
template <class Error, class Action>
std::string text_of_error(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  throw std::runtime_error("nothing was thrown");
}

/// How a process ended: its exit code, or minus the signal.
using Ends = std::vector<int>;

/// Runs `body` in so many processes that meet in a file, without a launcher that would end those
/// that outlive one. One that has stopped is killed once those of lower rank have ended, and all of
/// higher rank are killed once one has failed: they may wait for what it was to do.
inline Ends in_processes(int64_t processes, const std::function<void(const Ranks&)>& body) {
  static int number = 0;
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string file = std::string(folder ? folder : "/tmp") + "/rpc_store_" +
                           std::to_string(getpid()) + "_" + std::to_string(number++);
  std::vector<pid_t> pids;
  for (int64_t rank = 0; rank < processes; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      int code = 0;
      try {
        body(ranks_of_store(c10::make_intrusive<c10d::FileStore>(file, static_cast<int>(processes)),
                            rank, processes, std::chrono::seconds(60)));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(rank), error_text(error).c_str());
        code = 1;
      }
      std::fflush(nullptr);
      _exit(code);
    }
    pids.push_back(pid);
  }
  Ends ends;
  bool has_failed = false;
  for (const pid_t pid : pids) {
    if (has_failed) kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, WUNTRACED);
    if (WIFSTOPPED(status)) {
      // Those of lower rank, who miss it, have ended by now.
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
    }
    has_failed = has_failed || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
    ends.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return ends;
}

}  // namespace phalanx::rpc
