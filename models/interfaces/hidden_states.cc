// SPDX-License-Identifier: Apache-2.0
#include "models/interfaces/hidden_states.h"

#include <ATen/ops/linear.h>

namespace phalanx {

at::Tensor logits_of(const HiddenStates& hidden) { return at::linear(hidden.states, hidden.head); }

at::Tensor last_logits_of(const HiddenStates& hidden) {
  return at::linear(hidden.states.select(1, hidden.states.size(1) - 1), hidden.head);
}

}  // namespace phalanx
