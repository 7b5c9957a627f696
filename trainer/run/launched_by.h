// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/ranks/environment/environment.h"
#include "trainer/ranks/environment/launch_lines.h"
#include "trainer/ranks/environment/variables.h"

namespace phalanx {

/// What is known of the launcher of a rank.
struct LaunchedProcess {
  Environment place;                                ///< That it has given to this process.
  std::vector<std::string> command;                 ///< This process's, the program first.
  std::vector<std::vector<std::string>> ancestors;  ///< commands_of_ancestors().
};

/// How to start ranks as another launcher has started this one: its own line where it is a process
/// above this one, else one that starts as many ranks on as many nodes, by its variables, each
/// below the wrapper that this one has. With torchrun one for each node, where nodes have numbers.
std::vector<LaunchLine> lines_of_launcher(const LaunchedProcess& process,
                                          const VariableLookup& lookup);

}  // namespace phalanx
