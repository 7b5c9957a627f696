// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/finite_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainer/base/unsigned_nan.h"
#include "trainer/base/user_error.h"
#include "trainer/ranks/ranks.h"
#include "trainer/step/step_samples.h"

namespace phalanx {
namespace {

// The problem of the lowest rank that has one, and that rank's number; empty: no rank has one.
std::string first_of_ranks(const std::string& problem, const Ranks& ranks) {
  if (ranks.is_single_rank()) return problem;
  const auto problems = ranks.all_gather(problem);
  const auto first = std::find_if(problems.begin(), problems.end(),
                                  [](const auto& text) { return !text.empty(); });
  if (first == problems.end()) return {};
  return fmt::format("{} on rank {}", *first, first - problems.begin());
}

NonfiniteOrigin first_of_ranks(const NonfiniteOrigin& origin, const Ranks& ranks) {
  return {.data = first_of_ranks(origin.data, ranks),
          .module = first_of_ranks(origin.module, ranks)};
}

constexpr const char* kRestart =
    "from the newest checkpoint or, if none was saved, from the beginning";

// That of samples is the user's to mend.
void refuse_samples(const std::string& problem, const NonfiniteOrigin& origin) {
  if (origin.data.empty()) return;
  throw UserError(fmt::format(
      "{}: {}. Repair such samples or leave them out, and start again {}: the weights are as they "
      "were before this step",
      problem, origin.data, kRestart));
}

// `samples`: all of the step, in words.
[[noreturn]] void refuse(const std::string& problem, const NonfiniteOrigin& origin,
                         const std::string& samples) {
  refuse_samples(problem, origin);
  const std::string module =
      origin.module.empty() ? "" : "; the first value that is not finite is of " + origin.module;
  throw std::runtime_error(fmt::format(
      "{}{}{}; the weights are as they were before this step. Start again with a lower learning "
      "rate or clipped gradients: {}. Or set guards.on_nonfinite: skip, which leaves such steps "
      "out, and stops once they are more than guards.max_skips",
      problem, module, samples.empty() ? "" : "; " + samples, kRestart));
}

}  // namespace

double number_in(const at::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.numel() == 1) {
    return *tensor.const_data_ptr<float>();
  }
  return tensor.item().toDouble();
}

std::string nonfinite_value(std::string_view name, double value) {
  return std::isfinite(value) ? "" : fmt::format("the {} is {}", name, unsigned_nan(value));
}

std::string nonfinite_loss(const std::vector<std::pair<std::string, at::Tensor>>& parts) {
  for (const auto& [name, value] : parts) {
    if (auto problem = nonfinite_value(name, number_in(value)); !problem.empty()) {
      return problem;
    }
  }
  return {};
}

std::string nonfinite_gradient(const GradientNorm& norm,
                               const std::vector<NamedParameter>& parameters) {
  if (!norm.each.defined()) return {};
  const at::Tensor norms = norm.each.to(at::kCPU, at::kDouble);
  for (size_t i = 0; i < norm.positions.size(); ++i) {
    if (std::isfinite(norms.const_data_ptr<double>()[i])) continue;
    return fmt::format("the gradient of {} is not finite", parameters[norm.positions[i]].name);
  }
  return {};
}

void refuse_nonfinite(const FiniteCheck& check, const Ranks& ranks) {
  if (check.is_norm_finite) {
    if (check.loss_problem.empty()) return;
    refuse(check.loss_problem, check.origin(), samples_text(check.samples()));
  }
  // Ranks that average their gradients all find them so: the one with such a loss says more.
  std::string problem = first_of_ranks(check.loss_problem, ranks);
  if (problem.empty()) problem = first_of_ranks(check.gradient_problem(), ranks);
  if (problem.empty()) return;
  const NonfiniteOrigin origin = first_of_ranks(check.origin(), ranks);
  refuse(problem, origin, samples_of_ranks(check.samples(), ranks));
}

void refuse_overflow(double scale, const NonfiniteOrigin& origin, const Ranks& ranks) {
  refuse_samples("gradients are not finite", first_of_ranks(origin, ranks));
  throw std::runtime_error(fmt::format(
      "gradients are not finite although the loss is multiplied by {} only: it is not their "
      "range. The weights are as they were before this step; look for NaN with the trainer "
      "supervised_debug, or use mixed_precision.dtype: bfloat16",
      scale));
}

}  // namespace phalanx
