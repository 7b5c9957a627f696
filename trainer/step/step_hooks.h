// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/batch.h"
#include "trainer/api/loss.h"

namespace phalanx {

/// Called within a step: where the hooks of mixins are.
class StepHooks {
 public:
  virtual ~StepHooks() = default;

  virtual void before_forward(const Batch& batch) = 0;
  virtual void after_loss(const Batch& batch, const Loss& loss) = 0;
  virtual void after_backward() = 0;
};

}  // namespace phalanx
