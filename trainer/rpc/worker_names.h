// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {
class Ranks;
}

namespace phalanx::rpc {

/// The name of every rank's RPC worker, by rank; an empty one becomes "worker0" by rank. Every rank
/// calls it, and all refuse what one of them cannot be: std::invalid_argument for a name that none
/// may have, or two have; std::logic_error for a process that had another rank before.
std::vector<std::string> exchange_worker_names(const Ranks& ranks, const std::string& name);

}  // namespace phalanx::rpc
