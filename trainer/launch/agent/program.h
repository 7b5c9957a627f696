// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/launch/launcher.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

/// Throws UserError for a program that cannot be started, as PATH stands.
void require_program(const std::string& name);

/// A rank that becomes a program, bound to its cores: words[0] is looked for in PATH. Throws
/// UserError where it cannot be started, or the host cannot have such a binding.
RankMain program_main(std::vector<std::string> words, NumaBinding binding = NumaBinding::none);

/// What a program that exits with a code has left in its error file, which Python's
/// torch.distributed.elastic.multiprocessing.errors.record writes; empty: nothing.
std::string message_of_program(const std::filesystem::path& error_file);

}  // namespace phalanx
