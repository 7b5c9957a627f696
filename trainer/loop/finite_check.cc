// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/finite_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainer/base/unsigned_nan.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

// The first parameter whose gradient is not finite, in words; empty: only their norm is not.
std::string nonfinite_gradient(const std::vector<NamedParameter>& parameters) {
  for (const auto& parameter : parameters) {
    const at::Tensor& gradient = parameter.tensor.grad();
    if (!gradient.defined() || gradient.numel() == 0) continue;
    const double own = gradient.norm().item().toDouble();
    if (!std::isfinite(own)) return fmt::format("the gradient of {} is not finite", parameter.name);
  }
  return {};
}

// The problem of the lowest rank that has one, and that rank's number; empty: no rank has one.
std::string first_of_ranks(const std::string& problem, const Ranks& ranks) {
  if (ranks.is_single_rank()) return problem;
  const auto problems = ranks.all_gather(problem);
  const auto first = std::find_if(problems.begin(), problems.end(),
                                  [](const auto& text) { return !text.empty(); });
  if (first == problems.end()) return {};
  return fmt::format("{} on rank {}", *first, first - problems.begin());
}

[[noreturn]] void refuse(const std::string& problem) {
  throw std::runtime_error(fmt::format(
      "{}; the weights are as they were before this step. Start again with a lower learning rate "
      "or clipped gradients: from the newest checkpoint or, if none was saved, from the beginning. "
      "Or set training.stop_on_nonfinite_loss: false to go on",
      problem));
}

}  // namespace

std::string nonfinite_loss(const std::vector<std::pair<std::string, at::Tensor>>& parts) {
  for (const auto& [name, value] : parts) {
    const double number = value.item().toDouble();
    if (!std::isfinite(number)) return fmt::format("the {} is {}", name, unsigned_nan(number));
  }
  return {};
}

void refuse_nonfinite(const std::string& loss_problem, const at::Tensor& norm,
                      const std::vector<NamedParameter>& parameters, const Ranks& ranks) {
  if (std::isfinite(norm.item().toDouble())) {
    if (!loss_problem.empty()) refuse(loss_problem);
    return;
  }
  // Ranks that average their gradients all find them so: the one with such a loss says more.
  std::string problem = first_of_ranks(loss_problem, ranks);
  if (problem.empty()) problem = first_of_ranks(nonfinite_gradient(parameters), ranks);
  if (!problem.empty()) refuse(problem);
}

}  // namespace phalanx
