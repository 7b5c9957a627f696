// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// Counts the threads of this process that can still run its code. A joined thread is not counted,
/// even while the kernel still lists it in /proc/self/task. Throws
/// std::filesystem::filesystem_error if /proc is not mounted.
int64_t count_threads();

}  // namespace phalanx
