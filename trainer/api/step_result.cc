// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/step_result.h"

namespace phalanx {

NamedValues StepResult::losses() const {
  NamedValues values;
  double sum = 0;
  for (const auto& [name, tensor] : loss_parts) {
    values.emplace_back(name, tensor.item().toDouble());
    sum += values.back().second;
  }
  if (values.size() == 1) return {{"loss", sum}};
  values.insert(values.begin(), {"loss", sum});
  return values;
}

}  // namespace phalanx
