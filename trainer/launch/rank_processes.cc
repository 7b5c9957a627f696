// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/rank_processes.h"

#include <stdexcept>
#include <string>

#include "trainer/launch/supervisor.h"
#include "trainer/launch/threads.h"
#include "trainer/launch/verdict.h"

namespace phalanx {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr int64_t kExpectedThreads = 2;  // one is the sanitizer's own
#else
constexpr int64_t kExpectedThreads = 1;
#endif

// A fork copies the calling thread only, and locks as they are at that moment: what the other
// threads held would stay locked for ever in every rank.
void require_single_thread() {
  const int64_t threads = count_threads();
  if (threads <= kExpectedThreads) return;
  throw std::logic_error("ranks are forked from a process of one thread, but there are " +
                         std::to_string(threads) +
                         ": launch before anything starts threads (LibTorch's operations, CUDA, "
                         "data loaders), or start the ranks with torchrun");
}

}  // namespace

RankOutcome RankProcesses::run(const RankMain& rank_main) const {
  require_single_thread();
  Supervisor supervisor(count_, grace_, node_);
  supervisor.start(rank_main);
  return verdict(supervisor.wait(), node_.rank * count_);
}

}  // namespace phalanx
