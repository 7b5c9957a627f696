// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx::test_device {

/// Phalanx's functions on the stack of this thread, the innermost first, the device's own left out.
std::string calls_of_phalanx();

}  // namespace phalanx::test_device
