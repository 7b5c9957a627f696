// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/functions.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/rpc/own_functions.h"
#include "trainer/rpc/registered.h"

namespace phalanx::rpc {

RegisteredFunctions& RegisteredFunctions::instance() {
  static RegisteredFunctions registered;
  return registered;
}

bool RegisteredFunctions::add(const char* name, Function function, const char* file, int line) {
  const std::string place = fmt::format("{}:{}", file, line);
  if (is_own_function(name)) {
    problem_ = fmt::format(
        "the RPC function '{}' of {} has a name of Phalanx's own: leave out "
        "'phalanx/'",
        name, place);
    return false;
  }
  const auto [known, is_new] = places_.try_emplace(name, place);
  if (!is_new) {
    problem_ = fmt::format("the RPC function '{}' is registered in {} and in {}", name,
                           known->second, place);
    return false;
  }
  functions_.emplace(name, std::move(function));
  return true;
}

const FunctionTable& registered_functions() { return RegisteredFunctions::instance().functions(); }

bool register_function(const char* name, Function function, const char* file, int line) {
  return RegisteredFunctions::instance().add(name, std::move(function), file, line);
}

}  // namespace phalanx::rpc
