// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/next_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "trainer/base/program.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/tree/node.h"
#include "trainer/ranks/environment/launch_lines.h"

namespace phalanx {
namespace {

std::string line_of(const std::vector<std::string>& words, const std::string& arguments) {
  std::string line;
  for (const std::string& word : words) line += config::shell_word(word) + " ";
  return line + arguments;
}

// By the launch line that was used: the program alone would go on with one rank of several.
std::string on_all_nodes(const std::string& arguments) {
  std::vector<LaunchLine> lines = launch_lines();
  if (lines.empty()) lines = {{.place = "", .words = {program_name()}}};
  if (lines.size() == 1) {
    const std::string& place = lines.front().place;
    return (place.empty() ? "" : "on " + place + ": ") + line_of(lines.front().words, arguments);
  }
  std::string text = "on each node its line";
  for (const LaunchLine& line : lines) {
    text += fmt::format("\n  {}: {}", line.place, line_of(line.words, arguments));
  }
  return text;
}

std::string arguments_to_resume(const std::string& exp_dir) {
  const std::string config = (std::filesystem::path(exp_dir) / "config.yaml").string();
  return config::shell_word(config) + " " + config::argument("exp_dir", exp_dir);
}

}  // namespace

std::string command_to_resume(const std::string& exp_dir) {
  return on_all_nodes(arguments_to_resume(exp_dir));
}

std::string command_to_resume(const std::string& exp_dir, const config::Node& resolved) {
  const config::Node* resume = resolved.find_path("checkpoint.resume");
  const bool is_refused = resume != nullptr && resume->text == "never";
  return on_all_nodes(arguments_to_resume(exp_dir) +
                      (is_refused ? " checkpoint.resume=auto" : ""));
}

std::string command_to_evaluate(const std::string& exp_dir) {
  return fmt::format("{} evaluate {}", config::shell_word(program_name()),
                     config::shell_word(exp_dir));
}

}  // namespace phalanx
