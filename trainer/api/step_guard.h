// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// What becomes of a step whose gradients are there, before anything has moved. `undo`: the run
/// goes back to its last checkpoint, and on behind the samples of this step.
enum class StepVerdict { good, skip, undo };

/// What a step is judged by: the same on all ranks.
struct StepToJudge {
  int64_t step = 0;
  /// The mean loss over all ranks; none where one of several optimizers updates.
  std::optional<double> loss;
  double grad_norm = 0;        ///< Before clipping, without the loss scale.
  std::string_view optimizer;  ///< The one that updates, where there are several.
  /// Names the samples of all ranks. Every rank calls it, or none.
  std::function<std::string()> samples;
};

/// Verdict and reason.
struct StepJudgement {
  StepVerdict verdict = StepVerdict::good;
  std::string reason;  ///< "the loss is nan"; empty for a good step.
};

/// Judges each step before its update. The trainer is given it by TrainerBase::guard_steps.
class StepGuard {
 public:
  virtual ~StepGuard() = default;

  /// Whether values that are not finite are judged here. False: the run ends by them, or takes
  /// them, as training.stop_on_nonfinite_loss says.
  virtual bool takes_nonfinite() const = 0;

  /// Every rank calls it, with the same values, and gets the same verdict. Throws
  /// std::runtime_error where the run ends by the step.
  virtual StepJudgement judge(const StepToJudge& step) = 0;
};

}  // namespace phalanx
