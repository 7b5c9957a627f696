// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace phalanx {

/// A process's place among the ranks, as whoever launched it says: torchrun's variables, which the
/// project's own launchers set too. Read once, here and nowhere else.
struct Environment {
  int64_t rank = 0;              ///< RANK: of all processes.
  int64_t world_size = 1;        ///< WORLD_SIZE: processes in all.
  int64_t local_rank = 0;        ///< LOCAL_RANK: among those of this host; picks the device.
  int64_t local_world_size = 1;  ///< LOCAL_WORLD_SIZE: processes on this host.
  std::string master_addr;       ///< MASTER_ADDR: where rank 0's key-value store is.
  uint16_t master_port = 0;      ///< MASTER_PORT.
  /// TORCHELASTIC_USE_AGENT_STORE: the launcher's agent serves the store, so rank 0 does not.
  bool agent_store = false;
  /// TORCHELASTIC_RESTART_COUNT: attempts before this one. Their keys are still in an agent's
  /// store.
  int64_t restart_count = 0;
  /// An open socket that listens at MASTER_PORT, for rank 0's store; from a launcher on this host.
  std::optional<int> listen_fd;

  bool operator==(const Environment&) const = default;
};

/// Looks a variable up; nullptr when it is not set. `std::getenv`, or a test's own.
using VariableLookup = std::function<const char*(const char* name)>;

/// Whether somebody has launched this process as one of several ranks: one of RANK, WORLD_SIZE and
/// LOCAL_RANK is set.
bool launched_as_rank(const VariableLookup& lookup);
bool launched_as_rank();

/// The environment's word; a world of one where no launcher has set anything. Throws UserError for
/// a variable that is missing, no number, out of range or contradicts another one; each names the
/// variable, its value and what to do.
Environment read_environment(const VariableLookup& lookup);
Environment read_environment();

/// Sets the variables that read_environment reads, for this process.
void export_environment(const Environment& environment);

}  // namespace phalanx
