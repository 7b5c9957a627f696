// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <thread>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/host/host.h"
#include "trainer/io/file_lock.h"
#include "trainer/ranks/environment/launch_job.h"
#include "trainer/run/run_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Whether `try_lock` succeeds within `patience`; calls `meanwhile`, if there is one, between tries.
bool lock_within(milliseconds patience, const std::function<bool()>& try_lock,
                 const std::function<void()>& meanwhile = {}) {
  constexpr milliseconds kInterval(50);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!try_lock()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    if (meanwhile) meanwhile();
    std::this_thread::sleep_for(kInterval);
  }
  return true;
}

// What the holder has written, or is about to: who it is, and its launch.
std::vector<std::string> lines_of_holder(const fs::path& exp_dir) {
  constexpr uint64_t kLongest = 1 << 12;
  std::istringstream text(read_text(exp_dir / kLockFile, kLongest));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  lines.resize(2);
  return lines;
}

std::string name_of_holder(const fs::path& exp_dir) {
  const std::string name = lines_of_holder(exp_dir).front();
  return name.empty() ? "another process" : name;
}

std::string refusal(const fs::path& exp_dir, const std::string& holder, const std::string& job) {
  const std::string other_job = job_of_holder(exp_dir);
  const std::string launch = other_job.empty() ? "" : ", of the launch " + other_job;
  const char* const advice =
      met_only_themselves(job, other_job)
          ? "this launch and that one meet at a loopback address, each on its own host: give all "
            "nodes one --rdzv-endpoint, with a host as the others know it"
          : "wait for its end or stop it, or choose another exp_dir";
  return fmt::format("{} is being trained by {}{}, and two would write over each other: {}",
                     exp_dir.string(), holder, launch, advice);
}

void overwrite(File& file, const std::string& text) {
  if (::ftruncate(file.descriptor(), 0) != 0) throw IoError("empty", file.path(), errno);
  file.write(text);
}

File open_lock(const fs::path& exp_dir) {
  try {
    return {exp_dir / kLockFile, O_RDWR | O_CREAT};
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}; or choose another exp_dir", error.what()));
  }
}

}  // namespace

RunLock::RunLock(const fs::path& exp_dir, milliseconds patience) : file_(open_lock(exp_dir)) {
  const auto try_lock = [&] {
    return try_lock_or_warn(file_, "nothing keeps a second process from training in this folder");
  };
  try {
    if (!lock_within(patience, try_lock)) {
      throw UserError(refusal(exp_dir, name_of_holder(exp_dir), launch_job()));
    }
    overwrite(file_, fmt::format("process {} on {}\n{}\n", ::getpid(), host_name(), launch_job()));
  } catch (const IoError& error) {
    throw UserError(fmt::format("{}; or choose another exp_dir", error.what()));
  }
}

std::optional<std::string> holder_of_run(const fs::path& exp_dir, milliseconds patience,
                                         const std::function<void()>& meanwhile) {
  try {
    File file(exp_dir / kLockFile, O_RDWR);
    if (lock_within(
            patience, [&] { return file.try_lock(); }, meanwhile))
      return std::nullopt;
    return name_of_holder(exp_dir);
  } catch (const IoError&) {
    return std::nullopt;  // no run, none of this version, or no locks: who takes it is told
  }
}

std::string job_of_holder(const fs::path& exp_dir) {
  try {
    return lines_of_holder(exp_dir).back();
  } catch (const IoError&) {
    return {};
  }
}

std::string why_not_free(const fs::path& exp_dir, const std::string& job, milliseconds patience,
                         const std::function<void()>& meanwhile) {
  const auto holder = holder_of_run(exp_dir, patience, meanwhile);
  return holder ? refusal(exp_dir, *holder, job) : "";
}

void require_free_run(const fs::path& exp_dir, milliseconds patience,
                      const std::function<void()>& meanwhile) {
  const std::string why = why_not_free(exp_dir, launch_job(), patience, meanwhile);
  if (!why.empty()) throw UserError(why);
}

}  // namespace phalanx
