// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/model_base.h"
#include "trainer/api/named_values.h"
#include "trainer/api/optimizer.h"

namespace phalanx {

/// Patterns on the dotted names of a model's parameters: `*`, `?` and `[...]` stand for letters,
/// dots included.
struct ParameterPatterns {
  std::vector<std::string> patterns;
  std::string field;  ///< Where they stand: "optimizer.freeze (mine.yaml:12)".
};

/// Whether one of the patterns matches a parameter's name.
bool matches(const ParameterPatterns& patterns, const std::string& name);

/// Throws UserError with the nearest names for a pattern that matches none of these. `kind`:
/// "parameter", or what else they are.
void require_matches(const ParameterPatterns& patterns, std::string_view kind,
                     const std::vector<NamedParameter>& parameters);

/// Parameters that a config treats alike.
struct GroupRule {
  ParameterPatterns parameters;
  double lr_scale = 1;
  /// All of them decay: norms, biases and embeddings too, which else do not.
  bool decays_all = false;
  /// The optimizer's learning rates and weight decays for them, by their fields, for the log.
  NamedValues rates = {};
  NamedValues decays = {};
};

/// Which parameters are trained, and which fields of the optimizer hold for each.
struct ParameterRules {
  std::vector<GroupRule> groups;  ///< The first that matches a parameter counts.
  GroupRule rest;                 ///< Of parameters that none matches.
  ParameterPatterns freeze;
  /// What learning rates are multiplied by from one unit of the model to the one below it.
  double layer_lr_decay = 1;
  std::string layer_lr_decay_field = {};  ///< Where it stands, as ParameterPatterns::field.

  /// Whether the optimizer's own fields hold for all that is trained.
  bool is_plain() const { return groups.empty() && layer_lr_decay == 1; }
};

/// Has parameters that `rules.freeze` names require no gradient; before the model has values.
/// Throws UserError for a pattern that matches none or an adapter, and where nothing is left to
/// train.
void freeze_parameters(ModelBase& model, const ParameterRules& rules);

/// The same of these of its parameters alone; does not ask whether some are left to train.
void freeze_parameters(ModelBase& model, const ParameterRules& rules,
                       const std::vector<NamedParameter>& parameters);

/// Throws UserError where `model` has no parameter to train. `field`: what has frozen them.
void require_trained(ModelBase& model, const std::string& field);

/// The trained parameters by rule, unit and whether they decay; without rules the two groups of
/// `default_parameter_groups`. Throws UserError for a pattern that matches none of them, a group
/// whose parameters all belong to earlier ones, and `layer_lr_decay` of a model without units.
std::vector<ParameterGroup> parameter_groups(ModelBase& model, const ParameterRules& rules);

/// The same of those among its parameters for which `takes` holds.
std::vector<ParameterGroup> parameter_groups(
    ModelBase& model, const ParameterRules& rules,
    const std::function<bool(const NamedParameter&)>& takes);

/// One line a group of `parameter_groups`: its label, tensors, parameters, learning rates and
/// weight decays; with `rules.freeze` another one of what is not trained.
std::vector<std::string> describe_groups(const std::vector<ParameterGroup>& groups,
                                         ModelBase& model, const ParameterRules& rules);

}  // namespace phalanx
