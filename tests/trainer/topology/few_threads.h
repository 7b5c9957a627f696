// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <latch>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace phalanx {

/// Whether this process can start so many threads at once.
inline bool can_have_threads(int count) {
  std::latch end(1);
  std::vector<std::thread> threads;
  bool could = true;
  try {
    while (std::ssize(threads) < count) threads.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error&) {
    could = false;
  }
  end.count_down();
  for (std::thread& thread : threads) thread.join();
  return could;
}

/// Takes from this process, for good, the right to more than so many new threads. Returns whether
/// that holds: not for root, who becomes somebody without processes where that is possible.
inline bool keep_to_threads(int count) {
  if (geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    constexpr uid_t kFirstUnused = 1'500'000'000;
    const bool is_other =
        setuid(kFirstUnused + static_cast<uid_t>(getpid())) == 0 || setuid(kNobody) == 0;
    if (!is_other) return false;
  }
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  const rlim_t most = std::min<rlim_t>(limit.rlim_max, 100'000);
  for (limit.rlim_cur = 1; limit.rlim_cur <= most; ++limit.rlim_cur) {
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) return false;
    if (can_have_threads(count + 1)) break;
  }
  --limit.rlim_cur;
  return limit.rlim_cur > 0 && setrlimit(RLIMIT_NPROC, &limit) == 0 && !can_have_threads(count + 1);
}

/// Runs it in another process that can start so many threads, and no more. The process's exit code:
/// 0 where it returns true, 2 where false, 3 where it throws. nullopt where no limit
/// holds.
inline std::optional<int> with_few_threads(int threads, const std::function<bool()>& action) {
#ifdef __SANITIZE_THREAD__
  return std::nullopt;  // its processes start no threads after a fork
#endif
  constexpr int kNoLimit = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (!keep_to_threads(threads)) _exit(kNoLimit);
    try {
      _exit(action() ? 0 : 2);
    } catch (const std::exception&) {
      _exit(3);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code == kNoLimit ? std::nullopt : std::optional(code);
}

}  // namespace phalanx
