// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/topology/divide_cores.h"

namespace phalanx {

/// Threads for a rank, at least 1: its share of its cores, and of what the quotas of control groups
/// leave to all ranks of its host. `root` is where the file system begins.
int64_t threads_of_rank(const RankCores& cores, int64_t ranks_of_host,
                        const std::filesystem::path& root = "/");

/// What the user, or another launcher, asks for by OMP_NUM_THREADS: the first number of its list.
/// nullopt where it is not set, or share_threads() has set it. Throws UserError for another text.
std::optional<int64_t> chosen_threads();

/// Sets OMP_NUM_THREADS for this process and those that it starts, unless somebody has chosen it.
void share_threads(int64_t threads);

/// What is wrong with so many threads for each of the ranks on these cores; nullopt where they
/// fit.
std::optional<std::string> too_many_threads(int64_t threads, const RankCores& cores,
                                            int64_t ranks_of_host,
                                            const std::filesystem::path& root = "/");

}  // namespace phalanx
