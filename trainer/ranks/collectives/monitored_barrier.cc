// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/monitored_barrier.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/ranks/collectives/start_operation.h"

namespace phalanx {

void monitored_barrier(const Ranks& ranks, std::chrono::milliseconds timeout) {
  require_open(ranks, "monitored barrier");
  if (ranks.is_single_rank()) return;
  start_operation(ranks, "monitored barrier", [&](c10d::ProcessGroup& group) {
    c10d::BarrierOptions options;
    options.timeout = timeout;
    group.monitoredBarrier(options, /*waitAllRanks=*/true);
    return c10::intrusive_ptr<c10d::Work>();
  }).wait();
}

}  // namespace phalanx
