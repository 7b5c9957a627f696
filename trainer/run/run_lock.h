// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "trainer/io/file.h"

namespace phalanx {

/// How long a run is waited for whose process has been killed and is still ending.
inline constexpr std::chrono::milliseconds kLockPatience = std::chrono::seconds(5);

/// Keeps other processes from training in a run's folder for as long as it lives, or the process
/// does: a lock on `run.lock`, which says who holds it, and of which launch (launch_job) it is:
/// other nodes of that launch may take part. The file stays.
class RunLock {
 public:
  /// Throws UserError naming the holder where another process has the run and keeps it for
  /// `patience`, and when the file cannot be written. Where the file system has no locks it warns
  /// on stderr and goes on.
  explicit RunLock(const std::filesystem::path& exp_dir,
                   std::chrono::milliseconds patience = kLockPatience);

 private:
  File file_;
};

/// "process 123 on HOST": who trains in a run's folder and does not end within `patience`; nothing
/// where nobody does, or where that cannot be known. Calls `meanwhile` again and again while it
/// waits, and lets through what that throws.
std::optional<std::string> holder_of_run(
    const std::filesystem::path& exp_dir,
    std::chrono::milliseconds patience = std::chrono::milliseconds(0),
    const std::function<void()>& meanwhile = {});

/// The launch of who holds the lock, or has held it last; empty for a process of none.
std::string job_of_holder(const std::filesystem::path& exp_dir);

/// Why a process of the launch `job` (empty: of none) cannot train in the folder, where somebody
/// else does; empty where nobody does. Waits as holder_of_run.
std::string why_not_free(const std::filesystem::path& exp_dir, const std::string& job,
                         std::chrono::milliseconds patience = kLockPatience,
                         const std::function<void()>& meanwhile = {});

/// Throws UserError where somebody does; writes nothing.
void require_free_run(const std::filesystem::path& exp_dir,
                      std::chrono::milliseconds patience = kLockPatience,
                      const std::function<void()>& meanwhile = {});

}  // namespace phalanx
