// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/cli/command_parse.h"

namespace phalanx {

/// For a flag that a command lacks, how the field that may be meant is set: "; fields are set by
/// key=value: write training.max_steps=3". Empty for a command that takes no fields.
std::string field_hint(const UnknownOption& error);

}  // namespace phalanx
