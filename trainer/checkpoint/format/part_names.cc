// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/part_names.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <string_view>

#include "trainer/checkpoint/format/contents.h"

namespace phalanx {

void require_part_names(std::span<const StatePart> parts) {
  std::set<std::string_view> taken{kModelPart, kOptimizerPart, kRngPart};
  for (const StatePart& part : parts) {
    const bool is_name =
        !part.name.empty() &&
        part.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    if (!is_name) {
      throw std::logic_error(
          fmt::format("'{}' names no part of a checkpoint: write lower-case letters, digits and "
                      "'_'",
                      part.name));
    }
    if (taken.insert(part.name).second) continue;
    throw std::logic_error(fmt::format("a checkpoint cannot have two parts '{}'", part.name));
  }
}

}  // namespace phalanx
