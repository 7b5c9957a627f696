// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/adam_optimizer.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

#include <cstddef>
#include <optional>

namespace phalanx {
namespace {

enum State : std::size_t { kMean, kSquare, kLargestSquare, kSteps };

}  // namespace

AdamOptimizer::AdamOptimizer(const AdamRule& rule)
    : ElementwiseOptimizer({{.name = "exp_avg"},
                            {.name = "exp_avg_sq"},
                            {.name = "max_exp_avg_sq", .is_kept = rule.amsgrad},
                            counted_steps()}),
      rule_(rule) {}

void AdamOptimizer::update(const ActiveParameters& active, const at::Tensor& skip,
                           double lr) const {
  const TensorsAt steps = active.state(kSteps);
  count_step(steps);
  const auto call = [&](auto fused) {
    fused(active.parameters(), active.gradients, active.state(kMean), active.state(kSquare),
          active.state(kLargestSquare), steps, lr, rule_.betas[0], rule_.betas[1],
          active.decay(rule_.weight_decay), rule_.eps, rule_.amsgrad, rule_.maximize,
          /*grad_scale=*/std::nullopt, skip.defined() ? std::optional(skip) : std::nullopt);
  };
  if (rule_.decay == Decay::decoupled) {
    call([](const auto&... arguments) { at::_fused_adamw_(arguments...); });
  } else {
    call([](const auto&... arguments) { at::_fused_adam_(arguments...); });
  }
  uncount_step(steps, skip);
}

}  // namespace phalanx
