// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace phalanx {

/// Simulates a network's latency, to measure how much of it a schedule hides: each collective and
/// transfer of `backend`, for host memory, is over no sooner than `latency` after this rank began
/// it. Who begins one does not wait; those under way at the same time are late at the same time,
/// not one after the other; bandwidth stays that of `backend`. Errors come when they come. With a
/// latency of 0 this is `backend` itself.
c10::intrusive_ptr<c10d::Backend> delayed(c10::intrusive_ptr<c10d::Backend> backend,
                                          std::chrono::microseconds latency);

/// What PHALANX_SIMULATED_LATENCY_MS asks for; 0 where it is not set, or empty. Throws UserError
/// where it is no number of milliseconds from 0 to 60000.
std::chrono::microseconds simulated_latency();

}  // namespace phalanx
