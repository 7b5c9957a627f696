// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// The names of Slurm's list of nodes, in its order: "n[1-3,07],m1" is n1, n2, n3, n07, m1. Lists
/// in brackets may stand several times in a name: "r[1-2]n[0-1]". The same names as `scontrol show
/// hostnames` gives. Throws UserError for a list that is not closed or holds no numbers.
std::vector<std::string> expand_node_list(std::string_view list);

/// Slurm's tasks of each node: "2(x3),1" is 2, 2, 2, 1. Throws UserError for another text.
std::vector<int64_t> expand_task_counts(std::string_view counts);

}  // namespace phalanx
