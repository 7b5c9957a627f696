// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/tree/declaration.h"

namespace phalanx::config {

/// A key at the top that stands for fields of a section, and is replaced by them before a config is
/// resolved.
struct ShortKey {
  std::string name;
  std::string section;  ///< Trainers without this section do not have the key.
  std::string meaning;
};

/// A JSON Schema (draft 2020-12) of the configs that the trainers of these names take, from their
/// declarations: editors complete and check YAML files with it. Every field may also be an
/// interpolation. What only the trainer can know (checks across fields, files, values of short
/// keys) is left to it.
std::string json_schema(const std::vector<std::pair<std::string, const Declaration*>>& trainers,
                        std::span<const ShortKey> short_keys = {});

}  // namespace phalanx::config
