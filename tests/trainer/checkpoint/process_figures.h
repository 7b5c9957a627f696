// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace phalanx {

/// A number of a file in /proc/self, such as "VmRSS" in "status".
inline uint64_t process_figure(const std::string& file, const std::string& field) {
  std::ifstream lines("/proc/self/" + file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1));
  }
  throw std::runtime_error("/proc/self/" + file + " does not tell " + field);
}

/// Bytes that this process has read by system calls, be it from the kernel's cache.
inline uint64_t bytes_read_so_far() { return process_figure("io", "rchar"); }

/// How much this process has grown at most since this was made.
class GrownMemory {
 public:
  GrownMemory() {
    // What was freed and is kept would hide what is taken from it.
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
    before_ = process_figure("status", "VmRSS");
  }

  uint64_t most_bytes() const {
    const uint64_t most = process_figure("status", "VmHWM");
    return most > before_ ? (most - before_) << 10 : 0;
  }

 private:
  uint64_t before_ = 0;  ///< KiB.
};

}  // namespace phalanx
