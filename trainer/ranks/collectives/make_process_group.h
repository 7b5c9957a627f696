// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace phalanx {

/// Connects the ranks of a group that meet in `store`. Connecting, and each operation, fails after
/// `timeout`: Gloo takes it here alone, and ignores a later setTimeout. Throws what c10d throws.
using MakeProcessGroup = std::function<c10::intrusive_ptr<c10d::ProcessGroup>(
    c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t world_size,
    std::chrono::milliseconds timeout)>;

}  // namespace phalanx
