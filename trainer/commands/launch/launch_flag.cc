// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/launch_flag.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace phalanx {
namespace {

// "PET_NNODES" of "--nnodes".
std::string variable_of(std::string_view flag) {
  std::string name = "PET_" + std::string(flag.substr(2));
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
  });
  return name;
}

}  // namespace

std::optional<Given> given(const Invocation& invocation, std::string_view flag) {
  if (auto value = invocation.value(flag)) return Given{std::string(flag), *std::move(value)};
  const std::string variable = variable_of(flag);
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return Given{variable, value};
}

}  // namespace phalanx
