// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/api/stateful.h"
#include "trainer/api/step_guard.h"
#include "trainer/config/tree/forward.h"
#include "trainer/mixins/running_median.h"

namespace phalanx {

/// What a guard does about a bad step.
enum class OnBadStep { none, stop, skip, rollback };

/// The section `guards`.
struct GuardsConfig {
  std::optional<OnBadStep> on_nonfinite;  ///< Not `none`.
  OnBadStep on_spike = OnBadStep::none;
  std::optional<double> loss_factor = 3;
  std::optional<double> grad_norm_factor = 10;
  int64_t window = 100;
  int64_t max_skips = 5;
  int64_t within_steps = 1000;

  /// Whether steps are judged at all.
  bool is_on() const;
  /// Whether a guard may leave a step out.
  bool leaves_out() const;

  static void describe(config::Schema<GuardsConfig>& s);
};

/// Judges steps by their loss and gradient norm, and counts those that it leaves out.
class Guards : public StepGuard, public Stateful {
 public:
  explicit Guards(GuardsConfig config) : config_(config) {}

  bool takes_nonfinite() const override;
  StepJudgement judge(const StepToJudge& step) override;

  /// The run has gone back to a checkpoint, as `judge` has said. Steps that were left out stay
  /// counted. Returns the last of them, in words.
  std::string went_back();

  /// The medians' values, and which steps were left out.
  std::string json() const override;
  void restore(std::string_view json) override;

 private:
  struct Medians {
    RunningMedian loss;
    RunningMedian grad_norm;
  };

  /// A step that was left out.
  struct LeftOut {
    int64_t attempt = 0;
    int64_t step = 0;
    std::string reason;
  };

  Medians& medians_of(std::string_view optimizer);
  void count(const StepToJudge& step);
  // Notes a step that is left out. Throws where they are too many.
  void leave_out(int64_t step, const std::string& reason);

  GuardsConfig config_;
  std::map<std::string, Medians, std::less<>> medians_;  ///< By optimizer; "" of the only one.
  int64_t attempts_ = 0;  ///< Steps that were judged, those that were undone included.
  int64_t counted_step_ = 0;
  std::deque<LeftOut> left_out_;  ///< Within the last `within_steps`.
  bool goes_back_ = false;        ///< From an `undo` to the end of it.
};

}  // namespace phalanx
