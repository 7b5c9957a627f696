// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/command_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "trainer/base/exit_codes.h"
#include "trainer/base/user_error.h"
#include "trainer/cli/command_parse.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/command_table.h"
#include "trainer/commands/field_hint.h"
#include "trainer/commands/help.h"
#include "trainer/commands/launch/local_rank.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/registry/ambiguities.h"
#include "trainer/registry/registry.h"
#include "trainer/run/version.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

// The program without a command and without a config.
int run_program(const NamedCommand& program, const Invocation& invocation) {
  if (invocation.has("--version")) {
    fmt::print("{}", versions());
    return 0;
  }
  print_help(program);
  return 2;
}

int dispatch(Arguments arguments) {
  const auto [named, asks_for_help, invocation] = parse_command_line(program(), arguments);
  if (asks_for_help) {
    print_help(named);
    return 0;
  }
  if (named.command->run != nullptr) return named.command->run(invocation);
  if (named.is_program()) return run_program(named, invocation);
  throw UserError("an action is missing: " + named.usage() + "; `" + named.name +
                  " --help` says what each does");
}

// Paths are relative to where the user stands, under `bazel run` too.
void go_where_the_user_stands() {
  const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder != nullptr && chdir(folder) != 0) {
    throw UserError(std::string("cannot go to BUILD_WORKING_DIRECTORY ") + folder);
  }
}

// A write that fails is an error with a message, not the end of the process: on a file-size limit
// (SIGXFSZ), and when the reader of the screen goes away during a long run (SIGPIPE).
void fail_by_error_not_by_signal() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

int fail(std::string_view message, int code) {
  print_error(message);
  return code;
}

// Whoever read the output has seen enough, as `head` has.
bool reader_is_gone(const std::system_error& error) {
  return error.code() == std::errc::broken_pipe && std::ferror(stdout) != 0;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  int wrong = 0;
  for (const auto& message : NameTable::double_registrations()) wrong = fail(message, kFailure);
  for (const auto& message : ambiguous_registrations()) wrong = fail(message, kFailure);
  if (wrong != 0) return wrong;
  fail_by_error_not_by_signal();
  try {
    go_where_the_user_stands();
    std::vector<std::string> arguments(argv + 1, argv + argc);
    take_local_rank(arguments);
    return dispatch(arguments);
  } catch (const config::ConfigError& error) {
    const std::string text = error.mistakes().text(message_width());  // quotes lines as they fit
    return fail(text, kUsersMistake);
  } catch (const UnknownOption& error) {
    return fail(error.what() + field_hint(error), kUsersMistake);
  } catch (const UserError& error) {
    return fail(error_text(error), kUsersMistake);
  } catch (const std::system_error& error) {
    return reader_is_gone(error) ? kSignalBase + SIGPIPE : fail(error_text(error), kFailure);
  } catch (const std::exception& error) {
    return fail(error_text(error), kFailure);
  }
}

}  // namespace phalanx
