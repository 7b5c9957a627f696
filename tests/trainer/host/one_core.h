// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

namespace phalanx {

/// Cores that this thread may run on, where they are no more than a set holds.
inline int cores_of_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// While it lives this thread, and each that it starts, may run on one core alone.
class OneCore {
 public:
  OneCore() {
    cpu_set_t one;
    CPU_ZERO(&one);
    ::sched_getaffinity(0, sizeof(before_), &before_);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    }
    ::sched_setaffinity(0, sizeof(one), &one);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  ~OneCore() { ::sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_{};
};

}  // namespace phalanx
