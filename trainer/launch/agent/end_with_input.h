// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Has this process get SIGTERM when its standard input has come to its end: where that is a
/// connection to the process that has started it, it does not outlive that. For a process of one
/// thread. Throws std::system_error.
void end_with_input();

}  // namespace phalanx
