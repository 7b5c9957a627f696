// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "trainer/rpc/future.h"
#include "trainer/rpc/values.h"

namespace phalanx::rpc {

/// What other workers may call. It runs in a thread of the agent, several at a time. One that
/// answers later returns its future at once; one that waits for another call holds a thread of the
/// agent, and may hold the last (AgentOptions::threads).
using Function = std::function<Future(Values)>;

/// A Function of one that returns Values or a Future.
template <class Callable>
Function function_of(Callable callable) {
  if constexpr (std::is_same_v<std::invoke_result_t<Callable&, Values>, Future>) {
    return callable;
  } else {
    return [callable = std::move(callable)](Values values) mutable {
      return Future(callable(std::move(values)));
    };
  }
}

/// Functions by name.
using FunctionTable = std::map<std::string, Function>;

/// Those that REGISTER_RPC_FUNCTION has registered, in every agent of this process.
const FunctionTable& registered_functions();

/// Notes a function before main. The first of a name stays; Agent refuses to start where a name was
/// registered twice, or is one of Phalanx's own ("phalanx/ping").
bool register_function(const char* name, Function function, const char* file, int line);

}  // namespace phalanx::rpc

#define PHALANX_RPC_CONCATENATE_(a, b) a##b
#define PHALANX_RPC_CONCATENATE(a, b) PHALANX_RPC_CONCATENATE_(a, b)

/// REGISTER_RPC_FUNCTION("lookup", lookup): a function of Values, which returns Values or a Future,
/// that every worker may call by its name. Variadic, so that commas in a lambda pass.
#define REGISTER_RPC_FUNCTION(name, ...)                                                          \
  [[maybe_unused]] static const bool PHALANX_RPC_CONCATENATE(phalanx_rpc_, __COUNTER__) =         \
      ::phalanx::rpc::register_function(name, ::phalanx::rpc::function_of(__VA_ARGS__), __FILE__, \
                                        __LINE__)
