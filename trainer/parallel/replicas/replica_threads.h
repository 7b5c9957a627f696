// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <span>

namespace phalanx {

/// Calls `action` for each place of `devices` by its number, 0 on this thread and each other in a
/// thread of its own, with that device as the current one, this thread's stream of it, gradient
/// mode and autocast, and random numbers of its own (OwnRandomNumbers; on a GPU its generator is
/// seeded), whose seeds are drawn from the CPU's generator. While this thread's operators are
/// traced, all run on it, one after the other. Returns when all have ended. Where some throw, the
/// first one's error is thrown: as a c10::Error, UserError or std::logic_error where it is one,
/// else as a std::runtime_error that it is nested in; the message names the replica, and the errors
/// of others follow. A std::bad_alloc, a BrokenSampleError and what says that another rank is gone
/// come as they are.
void run_in_threads(std::span<const at::Device> devices,
                    const std::function<void(size_t replica)>& action);

}  // namespace phalanx
