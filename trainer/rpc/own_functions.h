// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "trainer/rpc/functions.h"
#include "trainer/rpc/served.h"

namespace phalanx::rpc {

/// Functions that every worker serves: to show that it is there, and for remote references.
inline constexpr const char* kPing = "phalanx/ping";
inline constexpr const char* kMake = "phalanx/make";
inline constexpr const char* kFetch = "phalanx/fetch";
inline constexpr const char* kRetain = "phalanx/retain";
inline constexpr const char* kRelease = "phalanx/release";

bool is_own_function(std::string_view name);

/// The arguments of kMake; of the others but kPing they are the text `id`.
Values make_arguments(int64_t id, const std::string& function, Values arguments);

FunctionTable own_functions(std::function<std::shared_ptr<Served>()> served);

}  // namespace phalanx::rpc
