// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "trainer/ranks/environment/environment.h"

namespace phalanx {

/// What the ranks know of each other once all have come.
struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> job_store;  ///< Outlasts a restart, where an agent serves it.
  c10::intrusive_ptr<c10d::Store> store;      ///< For this attempt alone.
  std::vector<int64_t> hosts;                 ///< A number for the host of each rank.
  std::vector<std::string> host_names;        ///< The name of each rank's host.
  std::vector<int64_t> local_ranks;           ///< Each rank's: its launcher's, or counted.
  std::vector<int64_t>
      ranks_on_cores;   ///< Ranks of this host that may use the cores that this one may.
  std::string address;  ///< Where the other ranks reach this one: 127.0.0.1 if that suffices.
};

/// The store of a launcher's agent, for a single rank. Throws UserError as init_from_env says.
c10::intrusive_ptr<c10d::Store> open_job_store(const Environment& environment,
                                               std::chrono::milliseconds timeout);

/// Connects with rank 0's store, or serves it, and waits until all ranks have. Throws UserError as
/// init_from_env says.
Rendezvous meet(const Environment& environment, std::chrono::milliseconds timeout);

}  // namespace phalanx
