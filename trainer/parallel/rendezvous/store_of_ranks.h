// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

#include "trainer/ranks/environment/environment.h"

namespace c10d {
class Store;
}

namespace phalanx {

/// Where ranks meet, for messages: "node0:29500", or the path of a file (store_file).
std::string place_of_ranks(const Environment& environment);

/// This host's address on the way to the place; where ranks meet in a file, the one that its own
/// name has. Waits for a route. Throws UserError for a name that is unknown, and after `timeout`.
std::string address_towards_ranks(const Environment& environment,
                                  std::chrono::milliseconds timeout);

/// The store in which the ranks of a job meet: connects with rank 0's or an agent's, serves it, or
/// opens the file. Its keys are apart from those of others who use the store. Throws UserError as
/// init_from_env says.
c10::intrusive_ptr<c10d::Store> open_store_of_ranks(const Environment& environment,
                                                    std::chrono::milliseconds timeout);

}  // namespace phalanx
