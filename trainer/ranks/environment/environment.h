// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/ranks/environment/variables.h"

namespace phalanx {

/// A local rank or a local world size that follows from the hosts of all ranks.
inline constexpr int64_t kFromHosts = -1;

/// A process's place among the ranks, as whoever launched it says. Read once, here and nowhere
/// else.
struct Environment {
  int64_t rank = 0;              ///< The place among all processes.
  int64_t world_size = 1;        ///< Processes in all.
  int64_t local_rank = 0;        ///< Among those of this host, or kFromHosts; picks the device.
  int64_t local_world_size = 1;  ///< Processes on this host, or kFromHosts.
  /// Where rank 0's key-value store is. Rank 0 may be told none: it serves at all addresses.
  std::string master_addr;
  uint16_t master_port = 0;
  /// The launcher's agent serves the store, so rank 0 does not (TORCHELASTIC_USE_AGENT_STORE).
  bool agent_store = false;
  /// The launcher shows each rank its own GPU alone, as device 0 (srun --gpus-per-task).
  bool sees_own_gpu = false;
  /// Attempts before this one: those of torchrun's agent, whose store still has their keys; of the
  /// batch job where no agent counts.
  int64_t restart_count = 0;
  /// An open socket that listens at master_port, for rank 0's store; from a launcher on this host.
  std::optional<int> listen_fd;
  /// Who has launched it: a name of known_launchers(); empty: nobody.
  std::string launcher;

  bool operator==(const Environment&) const = default;
};

/// The place that a launcher has given to this process among several ranks; nullopt for one that
/// was started alone. Asks known_launchers() in their order, or only `launcher`, one of their
/// names. Throws UserError for a variable that is missing, no number, out of range or contradicts
/// another one; each names the variable, its value and what to do.
std::optional<Environment> find_environment(const VariableLookup& lookup,
                                            std::string_view launcher = {});
std::optional<Environment> find_environment(std::string_view launcher = {});

/// The same, with a world of one for a process that was started alone.
Environment read_environment();

/// The batch job that this process belongs to.
struct BatchJob {
  std::string name;      ///< "slurm 7", the same when the job is requeued; empty without a job.
  int64_t restarts = 0;  ///< How often it was requeued.
};

/// Throws UserError.
BatchJob batch_job(const VariableLookup& lookup);
BatchJob batch_job();

/// Sets torchrun's variables, for this process and those that it starts.
void export_environment(const Environment& environment);

}  // namespace phalanx
