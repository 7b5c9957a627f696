// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/launch_lines.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace phalanx {

using Json = nlohmann::json;

std::string to_text(const std::vector<LaunchLine>& lines) {
  Json list = Json::array();
  for (const LaunchLine& line : lines) list.push_back({line.place, line.words});
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The variable may come from anybody.
std::vector<LaunchLine> launch_lines_in(const std::string& text) {
  try {
    std::vector<LaunchLine> lines;
    for (const Json& line : Json::parse(text)) {
      lines.push_back({.place = line.at(0), .words = line.at(1)});
      if (lines.back().words.empty()) return {};
    }
    return lines;
  } catch (const Json::exception&) {
    return {};
  }
}

void export_launch_lines(const std::vector<LaunchLine>& lines) {
  ::setenv(kLaunchLinesVariable, to_text(lines).c_str(), 1);
}

std::vector<LaunchLine> launch_lines() {
  const char* text = std::getenv(kLaunchLinesVariable);
  return text == nullptr ? std::vector<LaunchLine>() : launch_lines_in(text);
}

}  // namespace phalanx
