// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/parallel_engine.h"

namespace phalanx {

GradientNorm ParallelEngine::measure_gradients(
    const std::vector<NamedParameter>& parameters) const {
  return phalanx::measure_gradients(parameters);
}

}  // namespace phalanx
