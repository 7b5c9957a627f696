// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/parameter_rules.h"

namespace phalanx {

/// What a config says of one of the run's optimizers.
struct OptimizerRules {
  std::string name = {};  ///< As in the config's `optimizers`; empty: the run's only one.
  /// Those it takes; none: all that no other optimizer takes.
  std::optional<ParameterPatterns> parameters = {};
  ParameterRules rules = {};  ///< Of what it takes.
};

/// Has parameters require no gradient that the `freeze` of an optimizer names among those that it
/// takes; before the model has values. Throws UserError as freeze_parameters of one optimizer does.
void freeze_by_optimizer(ModelBase& model, std::span<const OptimizerRules> optimizers);

/// The groups of each optimizer (parameter_groups). Throws UserError for a pattern that matches no
/// trained parameter, with the names for trained parameters that no optimizer takes or that two
/// take, and for an optimizer without any.
std::vector<std::vector<ParameterGroup>> groups_by_optimizer(
    ModelBase& model, std::span<const OptimizerRules> optimizers);

/// The lines of each optimizer's groups (describe_groups). What an optimizer's `freeze` names is
/// the last of its lines.
std::vector<std::vector<std::string>> describe_by_optimizer(
    const std::vector<std::vector<ParameterGroup>>& groups, ModelBase& model,
    std::span<const OptimizerRules> optimizers);

}  // namespace phalanx
