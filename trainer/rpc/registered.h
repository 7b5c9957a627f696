// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "trainer/rpc/functions.h"

namespace phalanx::rpc {

/// The functions of REGISTER_RPC_FUNCTION. Filled before main, where nothing may throw.
class RegisteredFunctions {
 public:
  static RegisteredFunctions& instance();

  bool add(const char* name, Function function, const char* file, int line);

  const FunctionTable& functions() const { return functions_; }
  /// A name that was registered twice, with both places, or that none may have; empty: none.
  const std::string& problem() const { return problem_; }

 private:
  RegisteredFunctions() = default;

  FunctionTable functions_;
  std::map<std::string, std::string> places_;
  std::string problem_;
};

}  // namespace phalanx::rpc
