// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/finite_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trainer/base/unsigned_nan.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {

std::string nonfinite_loss(const std::vector<std::pair<std::string, at::Tensor>>& parts) {
  for (const auto& [name, value] : parts) {
    const double number = value.item().toDouble();
    if (!std::isfinite(number)) return fmt::format("the {} is {}", name, unsigned_nan(number));
  }
  return {};
}

std::string nonfinite_gradient(const at::Tensor& norm,
                               const std::vector<NamedParameter>& parameters) {
  if (std::isfinite(norm.item().toDouble())) return {};
  for (const auto& parameter : parameters) {
    const at::Tensor& gradient = parameter.tensor.grad();
    if (!gradient.defined() || gradient.numel() == 0) continue;
    const double own = gradient.norm().item().toDouble();
    if (!std::isfinite(own)) return fmt::format("the gradient of {} is not finite", parameter.name);
  }
  return {};
}

void refuse_nonfinite(const std::string& problem_here, const Ranks& ranks) {
  std::string problem = problem_here;
  if (!ranks.is_single_rank()) {
    const at::Tensor found = tensors::zeros({1});
    if (!problem.empty()) found.fill_(1);
    ranks.all_reduce(found, Reduction::maximum);
    if (*found.const_data_ptr<float>() == 0) return;
    const auto problems = ranks.all_gather(problem);
    const auto first = std::find_if(problems.begin(), problems.end(),
                                    [](const auto& text) { return !text.empty(); });
    problem = fmt::format("{} on rank {}", *first, first - problems.begin());
  }
  if (problem.empty()) return;
  throw std::runtime_error(fmt::format(
      "{}; the weights are as they were before this step. Start again with a lower learning rate "
      "or "
      "clipped gradients: from the newest checkpoint or, if none was saved, from the beginning. Or "
      "set training.stop_on_nonfinite_loss: false to go on",
      problem));
}

}  // namespace phalanx
