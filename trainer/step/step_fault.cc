// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_fault.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <typeinfo>

#include "trainer/api/broken_sample.h"
#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/ranks/failures/failure.h"
#include "trainer/step/batch_look.h"
#include "trainer/step/fault_look.h"

namespace phalanx {

bool explains_itself(const std::exception& error) {
  return dynamic_cast<const UserError*>(&error) != nullptr ||
         dynamic_cast<const BrokenSampleError*>(&error) != nullptr ||
         dynamic_cast<const NoSample*>(&error) != nullptr || is_communication_error(error) ||
         typeid(error) == typeid(std::logic_error);
}

ExplainedFault explain_error(const std::exception& error, const std::string& where,
                             const PassFault& fault) {
  TensorNames inputs;
  inputs.add(fault.batch);
  const FaultLook look =
      look_into(error, where, fault.task_model, fault.device, fault.again, inputs);
  return explain_by(look, fault.batch, fault.samples);
}

NonfiniteOrigin nonfinite_origin(std::span<const PassFault> passes) {
  NonfiniteOrigin origin;
  for (const PassFault& pass : passes) {
    if (!pass.batch.counts) continue;
    const auto bad =
        unless_it_fails([&] { return BatchLook(pass.batch, pass.samples).nonfinite_samples(); });
    origin.data = fmt::format("{}", fmt::join(bad, "; "));
    if (!bad.empty()) return origin;
  }
  for (const PassFault& pass : passes) {
    if (!pass.batch.counts) continue;
    const auto trace = unless_it_fails([&] {
      TensorNames inputs;
      inputs.add(pass.batch);
      return trace_again(pass.task_model, pass.device, pass.again, inputs);
    });
    if (!trace || !trace->nonfinite) continue;
    origin.module = operation_text(pass.task_model, *trace->nonfinite);
    return origin;
  }
  return origin;
}

}  // namespace phalanx
