// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fmt/format.h>

#include <filesystem>

#include "trainer/cli/command.h"
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

int run_bash(const Invocation&) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  fmt::print("{}\n_phalanx_program={}\ncomplete -F _phalanx_complete -- {}\n", kScript,
             shell_word(program), shell_word(program_invocation_short_name));
  return 0;
}

int run_table(const Invocation&) {
  fmt::print("{}", completion_table(program()));
  return 0;
}

}  // namespace

Command completion_command() {
  return {
      .name = "completion",
      .summary = "make the Tab key complete command lines",
      .help = "Completes commands, flags, files, the keys of overrides and their values.",
      .actions =
          {
              {
                  .name = "bash",
                  .summary = "a script for ~/.bashrc: source <(trainer completion bash)",
                  .help = "The script asks the program once for each build what can be completed, "
                          "and keeps the answer in ${XDG_CACHE_HOME:-~/.cache}/phalanx/completion.",
                  .run = run_bash,
              },
              {
                  .name = "table",
                  .summary = "what that script completes from",
                  .help =
                      "Prints lines of fields, with tabs between: the kind of line, the command or "
                      "section, and what may follow there.",
                  .run = run_table,
              },
          },
  };
}

}  // namespace phalanx
