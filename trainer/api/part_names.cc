// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/part_names.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>

namespace phalanx {

void require_part_names(std::span<const std::string_view> names) {
  std::set<std::string_view> taken{kModelPart, kOptimizerPart, kRngPart};
  for (const std::string_view name : names) {
    const bool is_name =
        !name.empty() &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    if (!is_name) {
      throw std::logic_error(
          fmt::format("'{}' names no part of a checkpoint: write lower-case letters, digits and "
                      "'_'",
                      name));
    }
    if (taken.insert(name).second) continue;
    throw std::logic_error(fmt::format("a checkpoint cannot have two parts '{}'", name));
  }
}

}  // namespace phalanx
