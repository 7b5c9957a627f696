// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/told_changes.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "trainer/base/exit_codes.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/starts.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::optional<int64_t> integer_of(const Json& end, const char* key) {
  const auto found = end.find(key);
  if (found == end.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

// The starts that have ended as a user's mistake without a step behind this one, by their numbers.
std::set<int64_t> refused_starts(const fs::path& exp_dir, int64_t step) {
  std::set<int64_t> refused;
  for (const Json& end : objects_of(exp_dir / kEndsFile)) {
    const auto start = integer_of(end, "start");
    const bool has_stepped = integer_of(end, "step").value_or(step) > step;
    if (start && integer_of(end, "exit_code") == kUsersMistake && !has_stepped) {
      refused.insert(*start);
    }
  }
  return refused;
}

}  // namespace

ToldValues told_changes(const fs::path& exp_dir) {
  const std::optional<Manifest> newest = newest_manifest(exp_dir);
  if (!newest) return {};
  const int64_t step = newest->state.step;
  const std::set<int64_t> refused = refused_starts(exp_dir, step);
  std::vector<PastStart> starts = past_starts(exp_dir);
  ToldValues told;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i].step != step || refused.contains(static_cast<int64_t>(i) + 1)) continue;
    for (ToldChange& change : starts[i].changed) {
      told.insert_or_assign(std::move(change.path), std::move(change.after));
    }
  }
  return told;
}

}  // namespace phalanx
