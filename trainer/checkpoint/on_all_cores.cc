// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/on_all_cores.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <vector>

#include "trainer/host/cores.h"

namespace phalanx {

void on_all_cores(std::size_t count, const std::function<Work()>& make_worker) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    try {
      const Work work = make_worker();
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  const std::size_t threads = std::min(count, static_cast<std::size_t>(usable_hardware_threads()));
  std::vector<std::future<void>> workers;
  for (std::size_t i = 0; i < threads; ++i) {
    workers.push_back(std::async(std::launch::async, run));
  }
  for (auto& worker : workers) worker.wait();
  for (auto& worker : workers) worker.get();
}

}  // namespace phalanx
