// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/clip.h"
#include "trainer/tensors/late_values.h"

namespace phalanx {

/// Whether the loss and the gradients of a step are finite, on a device that the host does not wait
/// for. The device judges at once: a flag there has the optimizer move nothing in a bad step nor
/// after it. The host reads the verdict a step later, so that the device always has work, and the
/// weights are then still those of before the bad step.
class LateVerdict {
 public:
  /// What a step is judged by: scalars of one device.
  struct Step {
    int64_t number = 0;
    std::vector<std::pair<std::string, at::Tensor>> loss_parts;
    /// By optimizer; empty: nobody asked, and the run does not end by them.
    std::vector<GradientNorm> norms;
    /// With a loss scale: 1 where the gradients have overflowed (GradScaler::unscale_there), which
    /// skips this step alone, and what the scale and its good steps have become.
    at::Tensor overflow;
    at::Tensor scale;
    at::Tensor good_steps;
    std::vector<std::vector<int64_t>> samples;  ///< Those of its micro-batches, for errors.
  };

  /// What became of a step, on the host.
  struct Judged {
    int64_t number = 0;
    std::string loss_problem;    ///< In words; empty: its loss is finite.
    bool is_norm_finite = true;  ///< Of all optimizers.
    std::vector<GradientNorm> norms;
    bool overflowed = false;
    double scale = 0;
    int64_t good_steps = 0;
    std::vector<std::vector<int64_t>> samples;
  };

  /// `stops`: a loss or norm that is not finite ends the run, and so does an overflow that brings
  /// the loss scale below `min_scale`. Otherwise only overflows skip their step.
  LateVerdict(bool stops, double min_scale) : stops_(stops), min_scale_(min_scale) {}

  /// Takes the next step, after `settle`. Returns the flag for Optimizer::step_unless.
  at::Tensor judge(Step step);

  /// What became of the last step, once; nothing where that is known already. Waits for its values.
  std::optional<Judged> settle();

 private:
  at::Tensor values_of(const Step& step) const;
  at::Tensor ends(const Step& step, const at::Tensor& values) const;

  struct Pending {
    Step step;
    LateValues values;
  };

  bool stops_;
  double min_scale_;
  at::Tensor ended_;  // 1 from the first bad step on; undefined before the first step
  std::optional<Pending> pending_;
};

}  // namespace phalanx
