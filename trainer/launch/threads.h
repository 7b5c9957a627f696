// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// Counts the threads of this process that can still run its code. A joined thread is not counted,
/// even while the kernel still lists it in /proc/self/task. Throws
/// std::filesystem::filesystem_error if /proc is not mounted.
int64_t count_threads();

/// Throws std::logic_error where this process has more than one thread: a fork copies the calling
/// thread only, and locks as they are at that moment, so that what the others held would stay
/// locked for ever in every rank.
void require_single_thread();

}  // namespace phalanx
