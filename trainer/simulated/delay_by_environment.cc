// SPDX-License-Identifier: Apache-2.0
// A program that links this delays its collectives by PHALANX_SIMULATED_LATENCY_MS.

#include <utility>

#include "trainer/ranks/collectives/backend_decorator.h"
#include "trainer/simulated/delayed_backend.h"

namespace phalanx {
namespace {

[[maybe_unused]] const bool is_set = decorate_backends(
    [](auto backend) { return delayed(std::move(backend), simulated_latency()); });

}  // namespace
}  // namespace phalanx
