// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace phalanx {

class Ranks;

/// Starts the mean over these ranks, in place, as default_hooks.allreduce_hook does: divides, then
/// sums. In a world of one it is there at once.
c10::intrusive_ptr<c10::ivalue::Future> start_bucket_mean(const at::Tensor& buffer,
                                                          const Ranks& ranks);

/// A future of a tensor that is computed on its device, for a hook to complete.
c10::intrusive_ptr<c10::ivalue::Future> future_of(const at::Tensor& tensor);

}  // namespace phalanx
