// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/api/named_values.h"
#include "trainer/api/step_result.h"
#include "trainer/metrics/record.h"

namespace phalanx {

class StepValues;
class TrainerBase;

/// The fields of a step's record, in the order in which they are shown: `values` (losses and
/// metrics), rates and gradient norms, what mixins have `added`, the loss scale, times. Waits for a
/// device that holds one. Throws std::logic_error as StepValues::append_to does.
std::vector<std::pair<std::string, FieldValue>> step_fields(const TrainerBase& trainer,
                                                            const StepResult& result,
                                                            const NamedValues& values,
                                                            const StepValues& added);

}  // namespace phalanx
