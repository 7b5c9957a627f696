// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <functional>
#include <span>
#include <string>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/api/task_model.h"

namespace phalanx {

/// What has gone wrong over a micro-batch. Nothing of it is computed before something has.
struct PassFault {
  const TaskModel& task_model;
  const Batch& batch;
  const KnownSamples& samples;
  c10::Device device;
  /// The pass once more, with a model that takes no part in what ranks do together; empty: it
  /// cannot be repeated.
  std::function<void(TaskModel& model)> again;
};

/// An error of a pass in the words of its input.
struct ExplainedFault {
  std::string text;  ///< What was thrown, in which module, and of which micro-batch.
  /// Values of the micro-batch are to blame, and no code: the user's mistake.
  bool is_of_data = false;
};

/// Explains what a pass has thrown, and `where` that was: "step 3, forward". Called while the error
/// is handled. The text is the error's own where nothing more is known.
ExplainedFault explain_error(const std::exception& error, const std::string& where,
                             const PassFault& fault);

/// Whether such an error says all by itself: those of other ranks, of the user, and of the code of
/// the trainer.
bool explains_itself(const std::exception& error);

/// Where values that are not finite come from; both empty where nothing is found.
struct NonfiniteOrigin {
  std::string data;    ///< The samples that hold such values.
  std::string module;  ///< Else the module and the operation that gives the first of them.
};

/// That of a step whose loss or gradients are not finite, of the passes over its micro-batches.
NonfiniteOrigin nonfinite_origin(std::span<const PassFault> passes);

}  // namespace phalanx
