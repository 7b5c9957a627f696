// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/early_end.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"

namespace phalanx {
namespace {

using Json = nlohmann::json;

// Of several for one start the first is the cause.
std::map<int64_t, Json> ends_by_start(const std::filesystem::path& exp_dir) {
  std::map<int64_t, Json> ends;
  for (Json& end : objects_of(exp_dir / kEndsFile)) {
    const auto start = end.find("start");
    if (start == end.end() || !start->is_number_integer()) continue;
    const auto number = start->get<int64_t>();
    ends.emplace(number, std::move(end));
  }
  return ends;
}

}  // namespace

std::string recorded_early_end(const std::filesystem::path& exp_dir) {
  const std::map<int64_t, Json> ends = ends_by_start(exp_dir);
  try {
    for (int64_t start = std::ssize(lines_of(exp_dir / kStartsFile)); start > 0; --start) {
      const auto found = ends.find(start);
      if (found == ends.end()) return "";
      const Json& end = found->second;
      if (!end.value("began", true)) continue;  // it has changed nothing
      return end.value("exit_code", 1) == 0 ? end.value("reason", "") : "";
    }
  } catch (const Json::exception&) {
    return "";  // values of another kind, as a hand or another program wrote them
  }
  return "";
}

}  // namespace phalanx
