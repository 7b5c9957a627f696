// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/api/clip.h"
#include "trainer/api/optimizer.h"
#include "trainer/step/step_fault.h"

namespace phalanx {

class Ranks;

/// The value of a tensor of one number; waits for it. In host memory it is read without an
/// operator, which costs a thousand instructions: one in seven thousand of a tiny model's step.
double number_in(const at::Tensor& tensor);

/// "the loss is nan", or empty for a finite value.
std::string nonfinite_value(std::string_view name, double value);

/// The first of a loss's parts that is NaN or infinite, in words; empty: none is. Waits for them.
std::string nonfinite_loss(const std::vector<std::pair<std::string, at::Tensor>>& parts);

/// The first parameter whose gradient is not finite, in words; empty: none is by itself. Waits for
/// the norms.
std::string nonfinite_gradient(const GradientNorm& norm,
                               const std::vector<NamedParameter>& parameters);

/// What is known of a step's loss and gradients.
struct FiniteCheck {
  std::string loss_problem;    ///< What is wrong with this rank's loss; empty: nothing.
  bool is_norm_finite = true;  ///< Whether the gradients' norm is; the same on all ranks.
  std::function<std::string()>
      gradient_problem;                     ///< Which of this rank's gradients; asked if needed.
  std::function<NonfiniteOrigin()> origin;  ///< As far as this rank knows it; asked if needed.
  /// The numbers of this rank's samples, by micro-batch; asked if needed.
  std::function<std::vector<std::vector<int64_t>>()> samples;
};

/// Throws on all ranks alike where the norm of the gradients is not finite, and one of the ranks
/// knows why: by its loss or by a parameter's gradient. Every rank calls it for the same step,
/// whose update has moved nothing. A loss that is not finite where the norm is (nothing depends on
/// it) ends this rank, and the others by its absence. Where samples hold values that are not
/// finite, a UserError names them; any other error names all samples of the step.
void refuse_nonfinite(const FiniteCheck& check, const Ranks& ranks);

/// Throws on all ranks alike where gradients overflow although the loss scale is as small as that.
[[noreturn]] void refuse_overflow(double scale, const NonfiniteOrigin& origin, const Ranks& ranks);

}  // namespace phalanx
