// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/next_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "trainer/base/program.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/tree/node.h"

namespace phalanx {

std::string command_to_resume(const std::string& exp_dir) {
  const std::string config = (std::filesystem::path(exp_dir) / "config.yaml").string();
  return fmt::format("{} {} {}", config::shell_word(program_name()), config::shell_word(config),
                     config::argument("exp_dir", exp_dir));
}

std::string command_to_resume(const std::string& exp_dir, const config::Node& resolved) {
  const config::Node* resume = resolved.find_path("checkpoint.resume");
  const bool is_refused = resume != nullptr && resume->text == "never";
  return command_to_resume(exp_dir) + (is_refused ? " checkpoint.resume=auto" : "");
}

std::string command_to_evaluate(const std::string& exp_dir) {
  return fmt::format("{} evaluate {}", config::shell_word(program_name()),
                     config::shell_word(exp_dir));
}

}  // namespace phalanx
