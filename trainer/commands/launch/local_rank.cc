// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/launch/local_rank.h"

#include <fmt/format.h>

#include <cstdlib>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr const char* kVariable = "LOCAL_RANK";

}  // namespace

void take_local_rank(std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  const std::string& first = arguments.front();
  if (!first.starts_with("--local-rank=") && !first.starts_with("--local_rank=")) return;
  const std::string value = first.substr(first.find('=') + 1);
  const char* variable = std::getenv(kVariable);
  if (variable != nullptr && value != variable) {
    throw UserError(
        fmt::format("--local-rank is {}, but {} is {}: which is it?", value, kVariable, variable));
  }
  ::setenv(kVariable, value.c_str(), 1);
  arguments.erase(arguments.begin());
}

}  // namespace phalanx
