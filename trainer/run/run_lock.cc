// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "trainer/base/user_error.h"
#include "trainer/host/host.h"
#include "trainer/io/file_lock.h"
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

// What the holder has written, or is about to.
std::string name_of_holder(const fs::path& exp_dir) {
  constexpr uint64_t kLongest = 1 << 10;
  std::string text = read_text(exp_dir / kLockFile, kLongest);
  text.resize(std::min(text.size(), text.find('\n')));
  return text.empty() ? "another process" : text;
}

[[noreturn]] void refuse(const fs::path& exp_dir, const std::string& holder) {
  throw UserError(fmt::format(
      "{} is being trained by {}, and two would write over each other: wait for its end or stop "
      "it, or choose another exp_dir",
      exp_dir.string(), holder));
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
    if (!lock_within(patience, try_lock)) refuse(exp_dir, name_of_holder(exp_dir));
    overwrite(file_, fmt::format("process {} on {}\n", ::getpid(), host_name()));
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

void require_free_run(const fs::path& exp_dir, milliseconds patience,
                      const std::function<void()>& meanwhile) {
  if (const auto holder = holder_of_run(exp_dir, patience, meanwhile)) refuse(exp_dir, *holder);
}

}  // namespace phalanx
