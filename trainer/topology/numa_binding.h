// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <utility>

namespace phalanx {

/// Which cores a rank is bound to: torchrun's --numa-binding (torch/numa/binding.py), also for
/// ranks without a GPU. Those take NUMA nodes in order, the same number of ranks on each.
enum class NumaBinding {
  /// With a GPU its NUMA node, if that has a core for each of its ranks. Without GPUs a node, or
  /// else a socket, if each rank has its whole share of all cores there, and none is left over.
  /// Otherwise none.
  automatic,
  none,          ///< Whatever the launcher and the system allow.
  node,          ///< The NUMA node of the rank's GPU.
  socket,        ///< The socket of that node.
  exclusive,     ///< A share of that node's cores for each of its ranks.
  core_complex,  ///< Cores of that node that share a last-level cache, others for each of its
                 ///< ranks.
};

/// What a config and a command line call them.
inline constexpr std::initializer_list<std::pair<const char*, NumaBinding>> kNumaBindings{
    {"auto", NumaBinding::automatic},      {"none", NumaBinding::none},
    {"node", NumaBinding::node},           {"socket", NumaBinding::socket},
    {"exclusive", NumaBinding::exclusive}, {"core-complex", NumaBinding::core_complex}};

}  // namespace phalanx
