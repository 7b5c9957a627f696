// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cost.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace phalanx {
namespace {

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A line of /proc/self/status, in MiB: "VmRSS", or "VmHWM", its peak.
double resident_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == key + ":" && status >> kib) return kib / 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + key);
}

/// The peak is counted from now on.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace

Cost measure_cost(const Ranks& ranks, const std::function<void()>& action) {
  ranks.barrier();
  forget_peak();
  const double resident = resident_mib("VmRSS");
  const double cpu = cpu_seconds();
  const auto began = std::chrono::steady_clock::now();
  action();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  return {.seconds = taken.count(),
          .cpu_seconds = cpu_seconds() - cpu,
          .extra_mib = std::max(0.0, resident_mib("VmHWM") - resident)};
}

void settle_memory(uint64_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
  ::munmap(memory, bytes);
}

}  // namespace phalanx
