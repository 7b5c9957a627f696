// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/command.h"

namespace phalanx {

/// `[FILE ...] [key=value ...]`, in any order.
struct DataArguments {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> overrides;
};

/// Tells one from the other: a file is there. `purpose` is what files are for, in messages. Throws
/// UserError for what is neither.
DataArguments data_arguments(Arguments arguments, std::string_view purpose);

}  // namespace phalanx
