// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/memory/deferred_init.h"

namespace torch::nn {
class Module;
}

namespace phalanx {

class Ranks;

/// Rank 0's values, on every rank, of the parameters that have some already, and of buffers where
/// `with_buffers`. `deferred` may be nullptr.
void broadcast_present(torch::nn::Module& module, const Ranks& ranks, bool with_buffers,
                       const DeferredInit* deferred);

/// Rank 0's values, on every rank, of all that is still to be drawn. Rank 0 draws while up to 64
/// MiB, or one storage, that it has drawn before are sent; the others draw nothing, and their
/// random numbers stay where they are. `filled` as DeferredInit::fill has it.
void draw_on_first_rank(DeferredInit& deferred, const Ranks& ranks,
                        const DeferredInit::Filled& filled);

}  // namespace phalanx
