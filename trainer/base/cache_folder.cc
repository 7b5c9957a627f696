// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/cache_folder.h"

#include <cstdlib>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> absolute_path_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text != '/') return std::nullopt;
  return text;
}

}  // namespace

std::optional<fs::path> cache_folder() {
  if (const auto cache = absolute_path_in("XDG_CACHE_HOME")) return *cache / "phalanx";
  if (const auto home = absolute_path_in("HOME")) return *home / ".cache" / "phalanx";
  return std::nullopt;
}

}  // namespace phalanx
