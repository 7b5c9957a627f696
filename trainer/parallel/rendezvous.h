#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "trainer/parallel/environment.h"

namespace phalanx {

/// What the ranks know of each other once all have come.
struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> job_store;  ///< Outlasts a restart, where an agent serves it.
  c10::intrusive_ptr<c10d::Store> store;      ///< Of this attempt alone.
  bool one_host = true;                       ///< All ranks are on this host.
};

/// Connects with rank 0's store, or serves it, and waits until all ranks have. Throws UserError as
/// init_from_env says.
Rendezvous meet(const Environment& environment, std::chrono::milliseconds timeout);

}  // namespace phalanx
