// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A command line that starts ranks again as those of this launch were started.
struct LaunchLine {
  std::string place;               ///< Where to give it: "node 1", "each node"; empty: here.
  std::vector<std::string> words;  ///< All in front of a config: "trainer", "launch", flags.

  bool operator==(const LaunchLine&) const = default;
};

/// Where those who know how ranks were started tell it to them, and to messages.
inline constexpr const char* kLaunchLinesVariable = "PHALANX_LAUNCH_LINES";

/// The value of that variable for lines, and back: none of a text that is no such value.
std::string to_text(const std::vector<LaunchLine>& lines);
std::vector<LaunchLine> launch_lines_in(const std::string& text);

/// Sets the variable, for this process and those that it starts. For a process of one thread.
void export_launch_lines(const std::vector<LaunchLine>& lines);

/// What the variable says; none where nobody has set it: the program alone starts the run.
std::vector<LaunchLine> launch_lines();

}  // namespace phalanx
