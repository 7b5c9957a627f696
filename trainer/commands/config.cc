#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/commands/command.h"
#include "trainer/commands/load_config.h"
#include "trainer/commands/show_config.h"
#include "trainer/config/differences.h"
#include "trainer/config/json_schema.h"
#include "trainer/config/nearest.h"
#include "trainer/config/user_error.h"

namespace phalanx {
namespace {

constexpr const char* kUsage =
    "what to do with a config: trainer config print CONFIG [CONFIG ...] [key=value ...], "
    "trainer config diff A B, or trainer config schema";

config::Node resolved(Arguments arguments) {
  return resolve_config(load_config(arguments), std::nullopt);
}

// Takes a flag out of what follows an action.
bool take_flag(std::vector<std::string>& arguments, std::string_view flag) {
  return std::erase(arguments, flag) > 0;
}

void print_config(Arguments arguments) {
  std::vector<std::string> rest(arguments.begin(), arguments.end());
  const PrintForm form{.minimal = take_flag(rest, "--minimal"), .json = take_flag(rest, "--json")};
  fmt::print("{}", printed_config(rest, form));
}

void explain_path(Arguments arguments) { fmt::print("{}", explained_path(arguments, {})); }

void print_starter(Arguments arguments) { fmt::print("{}", starter_config(arguments)); }

void print_reference(Arguments) { fmt::print("{}", config_reference()); }

// A file, or what a run is trained with.
config::Node config_of(const std::filesystem::path& path) {
  std::error_code error;
  const bool is_run = std::filesystem::is_directory(path, error);
  const std::string file = is_run ? path / "config.yaml" : path;
  return resolved(std::span(&file, 1));
}

void print_differences(Arguments arguments) {
  if (arguments.size() != 2) {
    throw UserError("two configs or runs are compared: trainer config diff A B");
  }
  const auto differences = config::differences(config_of(arguments[0]), config_of(arguments[1]));
  for (const auto& [path, a, b] : differences) fmt::print("{}: {} | {}\n", path, a, b);
}

void print_schema(Arguments arguments) {
  if (!arguments.empty()) throw UserError("trainer config schema takes no arguments");
  std::vector<std::pair<std::string, const config::Declaration*>> trainers;
  const auto& registry = TrainerRegistry::instance();
  for (const auto& name : registry.table().names()) {
    trainers.emplace_back(name, &registry.at(name).declaration());
  }
  fmt::print("{}", config::json_schema(trainers));
}

struct Action {
  std::string_view name;
  void (*run)(Arguments arguments);
};

constexpr std::array kActions{
    Action{"print", print_config},     Action{"explain", explain_path},
    Action{"diff", print_differences}, Action{"new", print_starter},
    Action{"schema", print_schema},    Action{"reference", print_reference}};

}  // namespace

int run_config(Arguments arguments) {
  if (arguments.empty()) throw UserError(kUsage);
  for (const auto& [name, run] : kActions) {
    if (arguments.front() != name) continue;
    run(arguments.subspan(1));
    return 0;
  }
  std::vector<std::string> names;
  for (const auto& [name, run] : kActions) names.emplace_back(name);
  throw UserError(unknown_name("action", arguments.front(), names) + "; " + kUsage);
}

}  // namespace phalanx
