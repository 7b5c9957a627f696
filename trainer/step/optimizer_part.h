// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/api/optimizer.h"
#include "trainer/api/optimizer_rules.h"

namespace phalanx {

/// One of a run's optimizers: what it moves, at which rates, and what bounds its gradients.
struct OptimizerPart {
  OptimizerRules rules = {};
  std::shared_ptr<Optimizer> optimizer = {};
  std::shared_ptr<LrScheduler> lr_scheduler = {};
  std::string schedule_field = "lr_scheduler";  ///< Where a config has that, for messages.
  std::optional<double> clip_grad_norm = {};    ///< None: the run's (UpdateRules).

  // StepParts fills these.
  std::vector<std::string> group_summaries = {};  ///< One line a parameter group.
  /// What it moves as this rank holds it, in the model's order.
  std::vector<NamedParameter> parameters = {};

  /// As the config's `optimizers` has it; empty: the run's only one.
  const std::string& name() const { return rules.name; }
  /// Whether this rank holds a gradient for it.
  bool has_gradients() const;
};

}  // namespace phalanx
