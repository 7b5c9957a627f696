// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/use_model.h"

#include <ATen/core/grad_mode.h>

#include "trainer/api/parameters.h"
#include "trainer/tensors/random.h"

namespace phalanx {

void use_model(const PassContext& context, const PassWork& work, const LoadModel& action) {
  const RngGuard random_numbers(context.parts.device());
  const EvaluationMode evaluation(context.parts.model());
  const at::NoGradGuard no_grad;
  context.errors.explaining(work, [&](TaskModel& model) { model.use([&] { action(model); }); });
}

}  // namespace phalanx
