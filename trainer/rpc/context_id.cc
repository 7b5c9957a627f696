// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/context_id.h"

#include <torch/csrc/distributed/autograd/autograd.h>

namespace phalanx::rpc {

using torch::distributed::autograd::DistAutogradContainer;

int64_t current_context() { return DistAutogradContainer::currentContextId(); }

ContextScope::ContextScope(int64_t context) : before_(current_context()) {
  DistAutogradContainer::forceCurrentContextId(context);
}
ContextScope::~ContextScope() { DistAutogradContainer::forceCurrentContextId(before_); }

}  // namespace phalanx::rpc
