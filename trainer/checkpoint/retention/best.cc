// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/retention/best.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"

namespace phalanx {

std::optional<KeepBest> keep_best_of(const std::filesystem::path& checkpoints_dir) {
  try {
    const Manifest newest = load_manifest(checkpoints_dir / read_latest(checkpoints_dir));
    const auto section = nlohmann::json::parse(newest.config).at("checkpoint").at("keep_best");
    if (section.is_null()) return std::nullopt;
    return KeepBest{
        .metric = section.at("metric").get<std::string>(),
        .mode = section.at("mode") == name_of(Better::higher) ? Better::higher : Better::lower};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<BestCheckpoint> best_checkpoint(const std::filesystem::path& checkpoints_dir,
                                              const KeepBest& by) {
  std::optional<BestCheckpoint> best;
  for (const int64_t step : committed_steps(checkpoints_dir)) {
    const auto value = metric_of(checkpoints_dir / step_folder_name(step), by.metric);
    if (!value) continue;
    const bool is_worse = best && is_better(best->value, *value, by.mode);
    if (!is_worse) best = BestCheckpoint{.step = step, .value = *value};
  }
  return best;
}

}  // namespace phalanx
