// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/api/task_model.h"
#include "trainer/step/operation_trace.h"
#include "trainer/step/step_fault.h"

namespace phalanx {

/// The pass once more, with a model that takes no part in what ranks do together; empty: it cannot
/// be repeated.
using PassAgain = std::function<void(TaskModel& model)>;

/// Calls a pass once more, without gradients unless it enables them, and watches its operations.
/// Afterwards the model's buffers and the random generators are as they were, also after an error
/// of the pass; parameters that it writes are not. None: it cannot be repeated, or without the
/// names of its `inputs` nothing says that it would be the same pass.
std::optional<OperationTrace> trace_again(const TaskModel& task_model, c10::Device device,
                                          const PassAgain& again, const TensorNames& inputs);

/// An operation with the module whose parameter it computes with, or `around` it, or before it.
std::string operation_text(const TaskModel& task_model, const TracedOperation& operation,
                           const std::string& around = {});

/// What an error says, and what its pass, called again, shows.
struct FaultLook {
  std::string error;   ///< In its own words.
  std::string where;   ///< "step 3, forward"
  std::string module;  ///< Module and operation that it comes from; empty: not known.
  std::optional<OperationTrace> trace;
};

/// Called while the error is handled.
FaultLook look_into(const std::exception& error, const std::string& where,
                    const TaskModel& task_model, c10::Device device, const PassAgain& again,
                    const TensorNames& inputs);

/// The same in the words of the micro-batch that the pass was of. The text is the error's own where
/// nothing more is known.
ExplainedFault explain_by(const FaultLook& look, const Batch& batch, const KnownSamples& samples);

/// What `find` finds; nothing where a device does not answer any more.
template <class Find>
auto unless_it_fails(const Find& find) -> decltype(find()) {
  try {
    return find();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace phalanx
