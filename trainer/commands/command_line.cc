#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "trainer/commands/command.h"
#include "trainer/config/help.h"
#include "trainer/config/nearest.h"
#include "trainer/config/user_error.h"
#include "trainer/core/error_text.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

constexpr std::array kCommands{
    Command{"train", "CONFIG [CONFIG ...] [key=value ...]", "train; the default", run_train},
    Command{"evaluate", "FOLDER [key=value ...]", "validate a run's or a checkpoint's model",
            run_evaluate},
    Command{"config", "print CONFIG [...] | diff A B | schema",
            "the whole config, with origins; what differs; for editors", run_config},
    Command{"list", "[KIND]", "what is registered: trainers, tasks, models, ...", run_list},
};

const Command* find_command(std::string_view name) {
  for (const auto& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

void print_usage() {
  fmt::print(
      "usage: trainer [COMMAND] CONFIG [CONFIG ...] [key=value ...]\n"
      "       trainer COMMAND --help\n\ncommands:\n");
  for (const auto& command : kCommands) {
    fmt::print("  {:<48} {}\n", fmt::format("{} {}", command.name, command.arguments),
               command.summary);
  }
  fmt::print("\noptions:\n  {:<48} this text\n  {:<48} versions\n", "--help", "--version");
}

void print_help(const Command& command) {
  fmt::print("usage: trainer {} {}\n{}\n", command.name, command.arguments, command.summary);
  if (command.run == run_list) return;
  for (const auto& name : TrainerRegistry::instance().table().names()) {
    fmt::print(
        "\nfields of a config for the trainer '{}':\n{}", name,
        config::help(config::field_entries(TrainerRegistry::instance().at(name).declaration())));
  }
}

// A bare word that names no file: sooner a misspelt command than a config.
bool looks_like_a_command(const std::string& word) {
  return word.find_first_of("./-") == std::string::npos && !std::filesystem::exists(word);
}

bool asks_for_help(Arguments arguments) {
  for (const auto& argument : arguments) {
    if (argument == "--help" || argument == "-h") return true;
  }
  return false;
}

int dispatch(Arguments arguments) {
  if (arguments.empty() || arguments.front() == "--help" || arguments.front() == "-h") {
    print_usage();
    return arguments.empty() ? 2 : 0;
  }
  if (arguments.front() == "--version") {
    fmt::print("phalanx, LibTorch {}\n", TORCH_VERSION);
    return 0;
  }
  const Command* named = find_command(arguments.front());
  if (named == nullptr && looks_like_a_command(arguments.front())) {
    std::vector<std::string> names;
    for (const auto& command : kCommands) names.emplace_back(command.name);
    throw UserError(unknown_name("command", arguments.front(), names) +
                    "; nor is there a config file of that name");
  }
  const Command& command = named != nullptr ? *named : kCommands.front();
  if (named != nullptr) arguments = arguments.subspan(1);
  if (asks_for_help(arguments)) {
    print_help(command);
    return 0;
  }
  for (const auto& argument : arguments) {
    if (argument.size() > 1 && argument.starts_with("-")) {
      throw UserError("unknown option '" + argument +
                      "'; fields are set by key=value, for example "
                      "training.max_steps=100");
    }
  }
  return command.run(arguments);
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

int report(const std::string& message, int code) {
  std::fflush(stdout);
  fmt::print(stderr, "error: {}\n", message);
  return code;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

int run_command_line(int argc, char** argv) {
  int doubles = 0;
  for (const auto& message : NameTable::double_registrations()) doubles = report(message, 1);
  if (doubles != 0) return doubles;
  fail_by_error_not_by_signal();
  try {
    go_where_the_user_stands();
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return dispatch(arguments);
  } catch (const UserError& error) {
    return report(error_text(error), 2);
  } catch (const std::exception& error) {
    return report(error_text(error), 1);
  }
}

}  // namespace phalanx
