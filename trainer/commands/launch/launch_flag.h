// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trainer/cli/command.h"

namespace phalanx {

/// The value of a flag of `trainer launch`. `name` is for errors: "--nnodes", or "PET_NNODES" if
/// the variable has set it.
struct Given {
  std::string name;
  std::string value;
};

/// The value that is written, else that of torchrun's variable, PET_NNODES for --nnodes; nullopt:
/// neither, or an empty variable.
std::optional<Given> given(const Invocation& invocation, std::string_view flag);

}  // namespace phalanx
