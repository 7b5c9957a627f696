// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/value_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "trainer/base/unsigned_nan.h"

namespace phalanx {
namespace {

constexpr std::size_t kUsualWidth = 16;
constexpr std::size_t kBetween = 2;

}  // namespace

std::vector<std::string> value_lines(const std::vector<NamedValues>& sets) {
  std::size_t width = kUsualWidth;
  for (const NamedValues& values : sets) {
    for (const auto& [name, value] : values) width = std::max(width, name.size() + kBetween);
  }
  std::vector<std::string> lines;
  for (const NamedValues& values : sets) {
    std::string& text = lines.emplace_back();
    for (const auto& [name, value] : values) {
      text += fmt::format("  {:<{}}{}\n", name, width, unsigned_nan(value));
    }
  }
  return lines;
}

}  // namespace phalanx
