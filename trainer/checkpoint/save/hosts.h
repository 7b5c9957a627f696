// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

class Ranks;

/// The host of each rank, numbered from 0 in the order of their first ranks; `host` is the
/// calling rank's host_identity(). Every rank calls it.
std::vector<int64_t> exchange_hosts(const Ranks& ranks, const std::string& host);

}  // namespace phalanx
