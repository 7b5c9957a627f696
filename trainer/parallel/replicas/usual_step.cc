// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/replicas/usual_step.h"

#include <fmt/format.h>

#include "trainer/base/user_error.h"

namespace phalanx {

std::span<const std::unique_ptr<Batch>> UsualStep::micro_batches() const {
  throw UserError(
      fmt::format("task '{}' runs its steps by itself (training_step), and parallel.data_parallel "
                  "has scattered their micro-batches over its replicas: leave "
                  "parallel.data_parallel out, or use strategy: ddp",
                  task_));
}

}  // namespace phalanx
