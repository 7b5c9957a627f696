// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/config/tree/declaration.h"

namespace phalanx::config {

/// A JSON Schema (draft 2020-12) of the configs that the trainers of these names take, from their
/// declarations: editors complete and check YAML files with it. Every field may also be an
/// interpolation. What only the trainer can know (checks across fields, files) is left to it.
std::string json_schema(const std::vector<std::pair<std::string, const Declaration*>>& trainers);

}  // namespace phalanx::config
