#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/node.h"
#include "trainer/core/model_base.h"
#include "trainer/core/optimizer.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx {

/// How much more host memory this process may take, and by what.
struct MemoryLimit {
  int64_t bytes = 0;
  std::string source;  ///< "RLIMIT_DATA", "the memory cgroup", "the host's memory".
  /// By the ranks of the host, each with its part: more ranks there do not help.
  bool is_shared = false;
};

/// The tightest of the limits that this process knows: its own, and its share of those that it has
/// in common with other ranks of the host. None: nothing limits it.
std::optional<MemoryLimit> memory_limit(int64_t local_world_size);

/// Refuses, before its memory is taken, a model whose parameters, gradients and optimizer state
/// cannot fit on this rank under any circumstances; what is needed besides (activations) is not
/// known yet. Host memory only. Throws UserError with the numbers and what would help.
void require_memory(const config::Node& resolved, ModelBase& model, const Optimizer& optimizer,
                    const World& world);

}  // namespace phalanx
