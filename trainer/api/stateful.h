// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"

namespace phalanx {

/// A state that a checkpoint keeps beside model and optimizer: of a mixin, of a task, of a part of
/// the step. A trainer is given it by TrainerBase::keep_state under the name of its part.
class Stateful {
 public:
  virtual ~Stateful() = default;

  /// Tensors that a checkpoint takes, and that a resume fills in place: the same names, shapes and
  /// order on all ranks. Complete when the model is restored. What they hold counts once `restore`
  /// is called: a checkpoint that turns out to be damaged may have written into them. Optional.
  virtual std::vector<ShardedTensorView> tensors() { return {}; }

  /// Small values as the text of a JSON object, the same on all ranks. Optional; empty: none.
  virtual std::string json() const { return {}; }

  /// Takes over what a checkpoint holds: its tensors are filled, `json` is its text. Not called
  /// where the checkpoint lacks the part: the state begins anew then. Throws UserError for values
  /// that this run cannot go on from.
  virtual void restore(std::string_view json) = 0;
};

/// What a Stateful brings to a checkpoint.
struct StatePart {
  std::string name;  ///< Lower-case letters, digits and '_'; not that of another part.
  std::vector<ShardedTensorView> tensors = {};
  std::string json = {};
};

/// A Stateful under the name of its part.
struct NamedStateful {
  std::string name;
  Stateful* state = nullptr;

  /// What it brings now.
  StatePart part() const {
    return {.name = name, .tensors = state->tensors(), .json = state->json()};
  }
};

}  // namespace phalanx
