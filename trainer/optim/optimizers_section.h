// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/api/optimizer_rules.h"
#include "trainer/config/tree/declaration.h"

namespace phalanx {

/// Declares the section `optimizer`, one for all parameters; null beside `optimizers`.
void declare_optimizer(config::Declaration& whole);

/// Declares `optimizers`, several by name: an entry has the fields of `optimizer`, and beside them
/// `parameters`, `lr_scheduler` and `clip_grad_norm`. A config has one of the two.
void declare_optimizers(config::Declaration& whole);

/// Where a config's tree has `optimizers` and no `optimizer`, says in it that there is no such one.
void complete_optimizers(config::Node& tree);

/// What each of a resolved config's optimizers moves: one without a name, or those of `optimizers`.
std::vector<OptimizerRules> optimizer_rules(const config::Node& resolved);

/// The section of the one of this name; of an empty name `optimizer`.
const config::Node& optimizer_section(const config::Node& resolved, const std::string& name);

/// The path of its schedule's section: "optimizers.critic.lr_scheduler", or "lr_scheduler" where it
/// has none of its own.
std::string schedule_path(const config::Node& resolved, const std::string& name);

/// The norm that its gradients are clipped to; none: the run's.
std::optional<double> own_clip_grad_norm(const config::Node& section);

}  // namespace phalanx
