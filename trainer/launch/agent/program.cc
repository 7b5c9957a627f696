// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/host/gpus.h"
#include "trainer/topology/bind_rank.h"
#include "trainer/topology/rank_threads.h"

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

// "${local_rank}" in a program's arguments, as in torchrun's
// (torch/distributed/elastic/utils/api.py).
void fill_in(std::string& word, int64_t local_rank) {
  constexpr std::string_view kMacro = "${local_rank}";
  const std::string text = std::to_string(local_rank);
  for (size_t at = 0; (at = word.find(kMacro, at)) != std::string::npos; at += text.size()) {
    word.replace(at, kMacro.size(), text);
  }
}

// What the program computes on is not known: on GPUs, where each rank can have one.
void bind_program(NumaBinding binding, const Environment& environment) {
  std::vector<int64_t> local_ranks(static_cast<size_t>(environment.local_world_size));
  std::iota(local_ranks.begin(), local_ranks.end(), 0);
  const RankCores cores =
      bind_rank(binding, {.local_ranks = local_ranks,
                          .local_rank = environment.local_rank,
                          .on_gpus = usable_gpus() >= environment.local_world_size});
  share_threads(threads_of_rank(cores, environment.local_world_size));
}

}  // namespace

void require_program(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  if (is_path ? can_be_started(name) : is_in_path(name)) return;
  throw UserError(fmt::format("there is no program '{}'{}", name,
                              is_path ? " that can be started" : " in PATH; a path has a `/`"));
}

RankMain program_main(std::vector<std::string> words, NumaBinding binding) {
  return [words = std::move(words), binding](const Environment& environment) -> RankOutcome {
    if (binding != NumaBinding::none) bind_program(binding, environment);
    std::vector<std::string> own = words;
    for (std::string& word : own) fill_in(word, environment.local_rank);
    std::vector<char*> arguments;
    for (std::string& word : own) arguments.push_back(word.data());
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
