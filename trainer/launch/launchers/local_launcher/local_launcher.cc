// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/launchers/local_launcher/local_launcher.h"

#include <algorithm>

#include "trainer/config/tree/schema.h"
#include "trainer/host/gpus.h"
#include "trainer/launch/rank_processes.h"
#include "trainer/registry/kinds.h"
#include "trainer/topology/topology.h"

namespace phalanx {
namespace {

// Past this, ranks on a CPU spend more on exchanging gradients than they gain.
constexpr int64_t kMaxAutomaticCpuRanks = 8;

// More than the cores and GPUs of any host: a slip of the keyboard must not fill the process table.
constexpr double kMostProcesses = 4096;

int64_t automatic_processes() {
  const int64_t gpus = usable_gpus();
  return gpus > 0 ? gpus : std::min(usable_cores(), kMaxAutomaticCpuRanks);
}

}  // namespace

void LocalLauncher::Config::describe(config::Schema<Config>& s) {
  s.field("processes", &Config::processes,
          "ranks that this host runs, where nobody else has started several; auto: one a GPU, or "
          "without GPUs one a core, at most 8")
      .null_is("auto")
      .in_range(1, kMostProcesses)
      .resume_may_change();
}

RankOutcome LocalLauncher::launch(const RankMain& rank_main) {
  const int64_t processes = processes_ ? *processes_ : automatic_processes();
  if (processes == 1) return rank_main(Environment{});
  return RankProcesses(processes).run(rank_main);
}

RankOutcome LocalLauncher::launch_at(const Environment& place, const RankMain& rank_main) {
  // torchrun starts a process for each rank, also where a node has one.
  const bool may_start = place.local_world_size == 1 && place.launcher != "torch";
  const int64_t processes = may_start ? processes_.value_or(automatic_processes()) : 1;
  if (processes == 1) return rank_main(place);
  return RankProcesses(processes, RankProcesses::kDefaultGrace, place).run(rank_main);
}

REGISTER_LAUNCHER("local", LocalLauncher);

}  // namespace phalanx
