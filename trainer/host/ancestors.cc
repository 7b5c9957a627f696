// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/ancestors.h"

#include <fstream>
#include <sstream>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr int kMost = 64;  // a guard against numbers that are given anew meanwhile

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// The fourth field; the second one, a name in parentheses, may hold any characters.
std::string parent_of(const fs::path& process) {
  const std::string stat = text_of(process / "stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state;
  std::string parent;
  fields >> state >> parent;
  return parent == "0" ? "" : parent;
}

std::vector<std::string> command_of(const fs::path& process) {
  std::istringstream text(text_of(process / "cmdline"));
  std::vector<std::string> words;
  for (std::string word; std::getline(text, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

std::vector<std::vector<std::string>> commands_of_ancestors(const fs::path& root) {
  const fs::path processes = root / "proc";
  std::vector<std::vector<std::string>> commands;
  std::string number = parent_of(processes / "self");
  for (int i = 0; i < kMost && !number.empty(); ++i) {
    auto command = command_of(processes / number);
    if (command.empty()) break;
    commands.push_back(std::move(command));
    number = parent_of(processes / number);
  }
  return commands;
}

}  // namespace phalanx
