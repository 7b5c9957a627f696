// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "trainer/api/optimizer.h"
#include "trainer/api/parameter_rules.h"
#include "trainer/config/tree/declaration.h"

namespace phalanx {

/// How the section `optimizer` is declared: a registered class's fields, and beside them `groups`
/// (whose entries have those fields too), `freeze` and `layer_lr_decay`, which every class gets.
config::Choice optimizer_choice();

/// The fields of an optimizer's section: those of a class (`own`) and the shared ones; nullptr for
/// nullptr.
const config::Declaration* optimizer_declaration(const config::Declaration* own);

/// Patterns in a resolved list. `field`: its path, for errors.
ParameterPatterns patterns_in(const config::Node& list, std::string field);

/// What a resolved section says of groups, frozen parameters and layers. `path`: where it stands.
ParameterRules parameter_rules(const config::Node& section, const std::string& path = "optimizer");

/// The optimizer that it describes: one of the class, or one for each group.
std::shared_ptr<Optimizer> make_optimizer(const config::Node& section);

}  // namespace phalanx
