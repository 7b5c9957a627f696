// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// Returns when every rank has come here. Where some have not within `timeout`, rank 0 throws a
/// CommunicationError that names all of these, and the others one that says that rank 0 did not
/// answer (torch.distributed's monitored_barrier). Through Gloo, for ranks on GPUs too.
void monitored_barrier(const Ranks& ranks, std::chrono::milliseconds timeout);

}  // namespace phalanx
