// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "trainer/launch/launcher.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx::test_device {

/// The same ranks twice.
struct Worlds {
  World on_device;  ///< Each on the device of its number.
  World& on_cpu;
};

/// Runs `body` in so many processes that have joined each other. Tensors of host memory go through
/// Gloo, those of a device through make_device_backend, also in subgroups. The launcher's word on
/// how they ended, with an empty message when all went well.
RankOutcome in_device_ranks(int64_t processes, const std::function<void(Worlds&)>& body);

}  // namespace phalanx::test_device
