// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

bool can_be_started(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// As execvp looks for one.
bool is_in_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable == nullptr ? "/bin:/usr/bin" : variable);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (can_be_started(fs::path(folder) / name)) return true;
  }
  return false;
}

}  // namespace

void require_program(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  if (is_path ? can_be_started(name) : is_in_path(name)) return;
  throw UserError(fmt::format("there is no program '{}'{}", name,
                              is_path ? " that can be started" : " in PATH; a path has a `/`"));
}

RankMain program_main(std::vector<std::string> words) {
  return [words = std::move(words)](const Environment&) -> RankOutcome {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    // What this program ignores, another one may rely on.
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGXFSZ, SIG_DFL);
    ::execvp(arguments.front(), arguments.data());
    throw UserError(fmt::format("cannot start '{}': {}", words.front(),
                                std::generic_category().message(errno)));
  };
}

std::string message_of_program(const std::filesystem::path& error_file) {
  std::ifstream file(error_file);
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("message")) return {};
  const auto& message = json["message"];
  if (message.is_string()) return message.get<std::string>();
  if (!message.is_object() || !message.contains("message")) return {};
  return message["message"].is_string() ? message["message"].get<std::string>() : std::string();
}

}  // namespace phalanx
