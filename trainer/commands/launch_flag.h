// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trainer/cli/command.h"

namespace phalanx {

/// A value of a flag of `trainer launch`, and what to call it in an error: "--nnodes", or
/// "PET_NNODES" where that has it.
struct Given {
  std::string name;
  std::string value;
};

/// The value that is written, else that of torchrun's variable, PET_NNODES for --nnodes; nullopt:
/// neither, or an empty variable.
std::optional<Given> given(const Invocation& invocation, std::string_view flag);

}  // namespace phalanx
