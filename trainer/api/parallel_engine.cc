// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/parallel_engine.h"

#include "trainer/api/clip.h"

namespace phalanx {

at::Tensor ParallelEngine::gradient_norm(const std::vector<NamedParameter>& parameters) const {
  return phalanx::gradient_norm(gradients_of(parameters));
}

}  // namespace phalanx
