// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/rank_processes.h"

#include "trainer/host/host.h"
#include "trainer/launch/signal_relay.h"
#include "trainer/launch/supervisor.h"
#include "trainer/launch/threads.h"
#include "trainer/launch/verdict.h"

namespace phalanx {

RankOutcome RankProcesses::run(const RankMain& rank_main) const {
  require_single_thread();
  RankGroup group{.count = count_,
                  .first = node_,
                  .is_whole_world = node_.world_size == 1,
                  .until_term = grace_,
                  .until_kill = grace_};
  group.first.rank = node_.rank * count_;
  group.first.world_size = node_.world_size * count_;
  SignalRelay signals;
  Supervisor supervisor(group, signals);
  supervisor.start(rank_main);
  return verdict(supervisor.wait(), group.first.rank, host_name());
}

}  // namespace phalanx
