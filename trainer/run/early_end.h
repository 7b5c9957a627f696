// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx {

/// Why the run in a folder has ended before its limits, as its ends.jsonl has it; empty where it
/// has not, or where a later start has gone on, or left no record of its end. Throws IoError.
std::string recorded_early_end(const std::filesystem::path& exp_dir);

}  // namespace phalanx
