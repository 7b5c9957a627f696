// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/cli/command.h"

namespace phalanx {

/// What one task of a job array adds to the command line.
struct ArrayRun {
  int64_t line = 0;                ///< Where its file has it, from 1.
  std::vector<std::string> words;  ///< Configs and overrides.
};

/// The runs of a file, one a line, in a shell's words; lines without words are left out. Checks the
/// config that each of them makes with the arguments before, and that none has the folder of
/// another one. Throws UserError, with file and line of all that is wrong.
std::vector<ArrayRun> read_array(const std::filesystem::path& file, Arguments before);

}  // namespace phalanx
