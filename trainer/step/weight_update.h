// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trainer/api/clip.h"
#include "trainer/step/nonfinite_search.h"
#include "trainer/step/ongoing_step.h"
#include "trainer/step/pass_context.h"

namespace phalanx {

/// What is done with gradients before they move the weights.
struct UpdateRules {
  std::optional<double> clip_grad_norm;
  std::optional<double> clip_grad_value;
  bool stop_on_nonfinite_loss = true;
};

/// Moves the weights by the gradients of a step: unscales and checks them, clips, and has the
/// optimizer step at the schedule's learning rate.
class WeightUpdate {
 public:
  WeightUpdate(const PassContext& context, const UpdateRules& rules, const NonfiniteSearch& search)
      : context_(context), rules_(rules), search_(search) {}

  /// Moves the weights, unless something is not finite, and drops the gradients. `total_steps`:
  /// those of the run; none: not known beforehand. Every rank calls it.
  void update(OngoingStep& step, std::optional<int64_t> total_steps);

  /// Waits for the last step's verdict on a device, and throws what is wrong with that step; the
  /// state then has its number. Every rank calls it, or none.
  void settle();

 private:
  void update_now(OngoingStep& step, double factor);
  void update_unwatched(OngoingStep& step, double factor);
  // With a loss scale: true where the gradients may be used.
  bool unscale(const OngoingStep& step);
  // Counts a step whose gradients had overflowed. Throws where no loss scale helps.
  void count_skipped(double scale, const std::function<NonfiniteOrigin()>& origin);
  bool needs_norm(const OngoingStep& step) const;
  GradientNorm measure_gradients(OngoingStep& step) const;
  void check_gradients(OngoingStep& step, const std::string& loss_problem) const;
  void clip(const OngoingStep& step) const;

  PassContext context_;
  UpdateRules rules_;
  const NonfiniteSearch& search_;
};

}  // namespace phalanx
