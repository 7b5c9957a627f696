// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace phalanx {

/// How ranks that have not equally many inputs train together: the arguments of torch's
/// DistributedDataParallel.join.
struct UnevenInputs {
  /// Gradients are divided by the number of ranks, so that each input weighs the same; false: by
  /// those that still have inputs. A comm hook divides as it always does.
  bool divide_by_initial_world_size = true;
  /// False: all ranks are known to have equally many, and nothing is exchanged for it.
  bool enable = true;
  /// True: all ranks throw InputsRanOut once one has no inputs left.
  bool throw_on_early_termination = false;
};

/// A rank has no inputs left, and DistributedDataParallel::join is to throw then: on all ranks,
/// between two passes.
class InputsRanOut : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace phalanx
