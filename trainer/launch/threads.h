// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// Threads of this process that can still run its code. One that has been joined is none of them,
/// though the kernel may list it in /proc/self/task for a while. Throws
/// std::filesystem::filesystem_error where there is no /proc.
int64_t count_threads();

}  // namespace phalanx
