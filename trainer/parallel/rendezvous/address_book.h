// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace phalanx {

/// A store for one group of Gloo. Gloo asks for the addresses of the group's ranks one after the
/// other, twice each: rank 0's store would be asked a number of times that grows with the square of
/// the ranks. This one gets all of them at once when it is asked for the first, and answers the
/// rest itself. Before it gives the first address of a host away, it waits until the network has a
/// way there, as long as the store's timeout: Gloo's own attempts follow each other at once. Throws
/// std::runtime_error then, with the rank and the address. Other keys, and stores that cannot get
/// several keys, are left as they are.
c10::intrusive_ptr<c10d::Store> make_address_book(c10::intrusive_ptr<c10d::Store> store,
                                                  int64_t world_size);

}  // namespace phalanx
