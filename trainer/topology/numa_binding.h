// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Which cores a rank is bound to: torchrun's --numa-binding (torch/numa/binding.py), also for
/// ranks without a GPU. Those take NUMA nodes in order, the same number of ranks on each.
enum class NumaBinding {
  automatic,     ///< A NUMA node or a socket where that costs no rank its share, else none.
  none,          ///< Whatever the launcher and the system allow.
  node,          ///< The NUMA node of the rank's GPU.
  socket,        ///< The socket of that node.
  exclusive,     ///< A share of that node's cores for each of its ranks.
  core_complex,  ///< Cores of that node that share a last-level cache, others for each of its
                 ///< ranks.
};

}  // namespace phalanx
