// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fmt/format.h>

#include <filesystem>

#include "trainer/cli/completion_table.h"
#include "trainer/commands/command_table.h"

namespace phalanx {
namespace {

constexpr std::string_view kScript =
#include "trainer/commands/completion_script.inc"
    ;

// As a word of a shell.
std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

int run_completion_bash(const Invocation&) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  fmt::print("{}\n_phalanx_program={}\ncomplete -F _phalanx_complete -- {}\n", kScript,
             shell_word(program), shell_word(program_invocation_short_name));
  return 0;
}

int run_completion_table(const Invocation&) {
  fmt::print("{}", completion_table(program()));
  return 0;
}

}  // namespace phalanx
