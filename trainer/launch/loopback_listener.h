// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trainer/base/descriptor.h"

namespace phalanx {

/// Where the ranks of one host meet.
inline constexpr const char* kLoopbackAddress = "127.0.0.1";

/// A socket that listens at a free port of 127.0.0.1, so that no other host reaches it and no
/// other process can take the port before rank 0 has it.
struct LoopbackListener {
  Descriptor socket;
  uint16_t port = 0;
};

/// Throws std::system_error.
LoopbackListener listen_on_loopback();

}  // namespace phalanx
