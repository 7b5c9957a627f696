// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/launcher_override.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "trainer/base/user_error.h"

namespace phalanx {

void refuse_launcher_overrides(Arguments arguments) {
  // The first one is a file, whatever it looks like.
  for (const std::string& argument : arguments.subspan(std::min<size_t>(arguments.size(), 1))) {
    const std::string_view word = argument;
    const size_t end = word.find('=');
    if (end == std::string_view::npos) continue;
    const std::string_view key =
        word.substr(0, end).substr(std::min(word.find_first_not_of('+'), end));
    const std::string_view value = word.substr(end + 1);
    if (key != "launcher" && !key.starts_with("launcher.")) continue;
    throw UserError(fmt::format(
        "{} has no effect here: trainer launch starts the ranks itself, and does not read the "
        "section launcher; {}",
        argument,
        key == "launcher.processes"
            ? fmt::format("write --nproc-per-node={} instead, before the config",
                          value == "null" ? "auto" : value)
            : "leave it out (--nproc-per-node is the number of ranks)"));
  }
}

}  // namespace phalanx
