// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/data/data_arguments.h"

#include <fmt/format.h>

#include <system_error>

#include "trainer/base/user_error.h"

namespace phalanx {

DataArguments data_arguments(Arguments arguments, std::string_view purpose) {
  DataArguments found;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (std::filesystem::exists(argument, error)) {
      found.files.emplace_back(argument);
    } else if (argument.find('=') != std::string::npos || argument.starts_with('~')) {
      found.overrides.push_back(argument);
    } else {
      throw UserError(
          fmt::format("there is no file '{}' {}, and it is no key=value", argument, purpose));
    }
  }
  return found;
}

}  // namespace phalanx
