// SPDX-License-Identifier: Apache-2.0
// Ranks that run unequally many passes.

#include <ATen/core/grad_mode.h>

#include <functional>
#include <stdexcept>

#include "trainer/parallel/broadcast_states.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/ddp/ddp_impl.h"

namespace phalanx {

void DistributedDataParallel::join(const std::function<void()>& loop, const UnevenInputs& inputs) {
  if (!inputs.enable) return loop();
  Impl& impl = *impl_;
  if (impl.uneven) throw std::logic_error("a join of uneven inputs within another one");
  if (impl.batch_statistics && !inputs.throw_on_early_termination) {
    throw std::logic_error(
        "a join of uneven inputs with sync_batchnorm: a rank without inputs has no batch "
        "statistics to take part with; set throw_on_early_termination");
  }
  const CommHook* const hook = comm_hook();
  if (hook != nullptr && hook->averages_parameters() && !inputs.throw_on_early_termination) {
    throw std::logic_error(
        "a join of uneven inputs with a comm hook that averages parameters: a rank without inputs "
        "makes no updates to average after; set throw_on_early_termination");
  }
  impl.uneven.emplace(impl.reducer(), impl.ranks, impl.states.front().device(), inputs);
  try {
    loop();
    shadow_passes();
  } catch (...) {
    impl.uneven.reset();
    throw;
  }
  impl.uneven.reset();
}

void DistributedDataParallel::shadow_passes() {
  Impl& impl = *impl_;
  const at::NoGradGuard no_grad;
  bool is_last = true;
  while (impl.uneven->ranks_with_inputs() > 0) {
    is_last = false;
    impl.reducer().use_order();
    if (!impl.buffers.empty() && impl.buffers_may_differ) {
      broadcast_tensors(impl.buffers, impl.ranks, impl.uneven->common_rank(false));
    }
    impl.buffers_may_differ = impl.uneven->synchronizes(false);
    if (!impl.buffers_may_differ) continue;
    impl.reducer().reduce_zeros(impl.options.find_unused_parameters && !impl.options.static_graph);
  }
  broadcast_tensors(impl.states, impl.ranks, impl.uneven->common_rank(is_last));
}

}  // namespace phalanx
