// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/told_changes.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "trainer/checkpoint/format/manifest.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/starts.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The starts that ended before they had loaded their checkpoint, by their numbers.
std::set<int64_t> starts_without_effect(const fs::path& exp_dir) {
  std::set<int64_t> numbers;
  for (const Json& end : objects_of(exp_dir / kEndsFile)) {
    const auto start = end.find("start");
    const auto began = end.find("began");
    const bool has_number = start != end.end() && start->is_number_integer();
    if (has_number && began != end.end() && *began == false) numbers.insert(start->get<int64_t>());
  }
  return numbers;
}

}  // namespace

ToldValues told_changes(const fs::path& exp_dir) {
  const std::optional<Manifest> newest = newest_manifest(exp_dir);
  if (!newest) return {};
  const int64_t step = newest->state.step;
  const std::set<int64_t> without_effect = starts_without_effect(exp_dir);
  std::vector<PastStart> starts = past_starts(exp_dir);
  ToldValues told;
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool has_effect = !without_effect.contains(static_cast<int64_t>(i) + 1);
    if (starts[i].step != step || !has_effect) continue;
    for (ToldChange& change : starts[i].changed) {
      told.insert_or_assign(std::move(change.path), std::move(change.after));
    }
  }
  return told;
}

}  // namespace phalanx
