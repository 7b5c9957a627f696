// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/hub_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

bool is_word_of_hub(std::string_view word) {
  const auto is_usual = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !word.empty() && std::isalnum(static_cast<unsigned char>(word.front())) != 0 &&
         std::all_of(word.begin(), word.end(), is_usual);
}

// "name" or "org/name", where no folder "org" is here.
bool is_name_of_hub(const std::string& name) {
  const std::string_view text = name;
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return is_word_of_hub(text);
  std::error_code unknown;
  const std::string_view owner = text.substr(0, slash);
  return is_word_of_hub(owner) && is_word_of_hub(text.substr(slash + 1)) &&
         !fs::exists(owner, unknown);
}

}  // namespace

std::string about_missing(const fs::path& path) {
  const std::string name = path.string();
  if (!is_name_of_hub(name)) return fmt::format("'{}' does not exist", name);
  return fmt::format(
      "'{0}' does not exist: if it names a model of Hugging Face's hub, download it first (`hf "
      "download {0} --local-dir {1}`), and name that folder",
      name, path.filename().string());
}

}  // namespace phalanx
