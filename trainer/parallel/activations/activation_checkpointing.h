// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/tree/forward.h"

namespace torch::nn {
class Module;
}

namespace phalanx {

/// Which units keep their input only.
enum class CheckpointedUnits { none, unit, every_n, by_name };

/// The section `activation_checkpointing`.
struct ActivationCheckpointing {
  CheckpointedUnits policy = CheckpointedUnits::none;
  int64_t n = 2;
  std::vector<std::string> names;

  static void describe(config::Schema<ActivationCheckpointing>& s);
};

/// Chosen units of a module keep their inputs for the backward pass, and compute what autograd
/// needs of them once more when it asks for it: bitwise the same, dropout included. Less memory for
/// one more forward pass of these units (torch.utils.checkpoint, use_reentrant=False). Units
/// within a chosen one are part of it. The number of chosen ones. Throws UserError for a name that
/// no unit has.
std::size_t checkpoint_activations(torch::nn::Module& module,
                                   const ActivationCheckpointing& checkpointing);

}  // namespace phalanx
