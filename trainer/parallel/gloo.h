// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace phalanx {

/// A Gloo backend for CPU tensors, connected with the other ranks that meet in `store`. Listens on
/// loopback alone when all ranks are on this host; else on the address that this host's name stands
/// for. GLOO_SOCKET_IFNAME picks other network interfaces. Throws UserError where several hosts
/// could not reach this one, and what Gloo throws.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                                    int64_t rank, int64_t world_size,
                                                    std::chrono::milliseconds timeout,
                                                    bool one_host);

}  // namespace phalanx
