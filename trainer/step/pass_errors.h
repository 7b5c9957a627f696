// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/known_samples.h"
#include "trainer/api/state.h"
#include "trainer/step/step_parts.h"

namespace phalanx {

/// What is done to the model, and of which micro-batch, in an error.
struct PassWork {
  std::string_view activity;
  const Batch* batch = nullptr;
  const KnownSamples* samples = nullptr;  ///< Those of the micro-batch.
};

/// Explains the errors of passes, and those of memory that has ended.
class PassErrors {
 public:
  /// Which options would need less memory; asked once it has ended.
  using Advice = std::function<std::vector<std::string>()>;

  /// The parts and the state must outlive it. `batch_size`: samples of a micro-batch.
  PassErrors(StepParts& parts, const State& state, int64_t batch_size, Advice advice);

  /// Calls `pass` with the model. Adds to an error of it what its micro-batch is like, and where in
  /// the model `pass`, called again, fails.
  template <class Pass>
  auto explaining(const PassWork& work, const Pass& pass) const {
    try {
      return pass(parts_.task_model());
    } catch (const std::exception& error) {
      explain(error, work, pass);
      throw;
    }
  }

  /// Calls `function`. Adds to an out-of-memory error what is held, and how to need less.
  template <class Function>
  auto explaining_memory(std::string_view activity, const Function& function) const {
    try {
      return function();
    } catch (const std::exception& error) {
      explain_memory(error, activity);
      throw;
    }
  }

  /// Throws an error that says more; returns where nothing more is known. `again`: the pass once
  /// more; empty: it cannot be repeated.
  void explain(const std::exception& error, const PassWork& work,
               const std::function<void(TaskModel& model)>& again) const;

 private:
  // Throws that error for an out-of-memory one; returns for any other.
  void explain_memory(const std::exception& error, std::string_view activity) const;

  StepParts& parts_;
  const State& state_;
  int64_t batch_size_;
  Advice advice_;
};

}  // namespace phalanx
