// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Where `trainer launch` tells its ranks which launch they belong to: the same on all of its
/// nodes, and in all of its rounds.
inline constexpr const char* kLaunchJobVariable = "PHALANX_LAUNCH_JOB";

/// That launch; empty for a process of none.
std::string launch_job();

/// Whether two launches are different ones that each meet at a loopback address: of nodes that were
/// to meet each other, each has made a launch of its own.
bool met_only_themselves(const std::string& job, const std::string& other);

}  // namespace phalanx
