// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phalanx {

/// A rank's message with its number before it, "rank 1: no data", unless the message names a rank
/// there already: this one, "rank 1 found no store", or whoever said it, "rank 0: no data".
std::string said_by(int64_t rank, std::string_view message);

/// A message with the place where it arose before it, "step 2: no space", behind the rank that said
/// it, "rank 0: step 2: no space"; unless that place stands there already.
std::string said_in(std::string_view place, std::string_view message);

}  // namespace phalanx
