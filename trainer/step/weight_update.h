// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/FunctionRef.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/clip.h"
#include "trainer/api/step_guard.h"
#include "trainer/step/nonfinite_search.h"
#include "trainer/step/ongoing_step.h"
#include "trainer/step/optimizer_part.h"
#include "trainer/step/pass_context.h"
#include "trainer/step/schedule_point.h"

namespace phalanx {

/// What is done with gradients before they move the weights.
struct UpdateRules {
  std::optional<double> clip_grad_norm;
  std::optional<double> clip_grad_value;
  bool stop_on_nonfinite_loss = true;
};

/// Moves the weights by the gradients of a step: unscales and checks them, clips, and has the
/// optimizers step, each at its schedule's learning rate.
class WeightUpdate {
 public:
  WeightUpdate(const PassContext& context, const UpdateRules& rules, const NonfiniteSearch& search)
      : context_(context), rules_(rules), search_(search) {}

  /// Has a guard judge each update from now on, which must outlive this: the host then waits for
  /// the loss and the norm of each (StepParts has no late verdict).
  void guard_by(StepGuard& guard) { guard_ = &guard; }
  bool is_guarded() const { return guard_ != nullptr; }

  /// Has all optimizers move the weights, unless something is not finite, and drops the gradients.
  /// `point`: where the schedules are. Every rank calls it.
  void update(OngoingStep& step, const SchedulePoint& point) {
    update(step, point, context_.parts.optimizers());
  }
  /// The same of these optimizers alone: none of them moves unless all gradients of all of them are
  /// finite. The gradients of others stay.
  void update(OngoingStep& step, const SchedulePoint& point,
              std::span<const OptimizerPart> optimizers);

  /// Waits for the last update's verdict on a device, and throws what is wrong with its step; the
  /// state then has its number. Every rank calls it, or none.
  void settle();

 private:
  using Parts = std::vector<const OptimizerPart*>;
  // Clips by these norms, where they are there, and has the optimizers step unless `skip` is 1.
  using Move =
      c10::function_ref<void(const std::vector<GradientNorm>& norms, const at::Tensor& skip)>;

  void update_now(OngoingStep& step, const Parts& parts, const Move& move);
  void update_unwatched(OngoingStep& step, const Parts& parts, const Move& move);
  // With a loss scale: true where the gradients may be used.
  bool unscale(const OngoingStep& step, const Parts& parts);
  // The same on a device: 1 there where they may not.
  at::Tensor unscale_there(const Parts& parts);
  // Counts the steps that have moved nothing, as gradients of one or more updates had overflowed.
  void count_update(int64_t step, bool overflowed);
  // Throws where no loss scale helps.
  void refuse_small_scale(double scale, const std::function<NonfiniteOrigin()>& origin) const;
  // Those of the optimizers that do not move now.
  std::vector<at::Tensor> gradients_that_stay(const Parts& parts) const;
  // By optimizer; empty where nobody needs them.
  std::vector<GradientNorm> measure_gradients(OngoingStep& step, const Parts& parts) const;
  // Whether a guard, if there is one, has the optimizers move by gradients of these norms.
  bool passes_guard(OngoingStep& step, const Parts& parts, const std::vector<GradientNorm>& norms);
  void clip(const OptimizerPart& part, const GradientNorm& norm) const;
  std::optional<double> limit_of(const OptimizerPart& part) const {
    return part.clip_grad_norm ? part.clip_grad_norm : rules_.clip_grad_norm;
  }

  /// What is known of the updates of a step under a loss scale.
  struct ScaledUpdates {
    int64_t step = 0;
    bool has_overflowed = false;
    bool has_moved = false;

    bool moved_nothing() const { return has_overflowed && !has_moved; }
  };

  PassContext context_;
  UpdateRules rules_;
  const NonfiniteSearch& search_;
  StepGuard* guard_ = nullptr;
  ScaledUpdates scaled_;
  Parts judged_;  ///< The optimizers of the update that the late verdict is about.
};

}  // namespace phalanx
