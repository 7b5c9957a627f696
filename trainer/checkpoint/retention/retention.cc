// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/retention/retention.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/config/tree/schema.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> best_steps(std::span<const Retained> checkpoints, const KeepBest& best) {
  std::vector<Retained> measured;
  std::copy_if(checkpoints.begin(), checkpoints.end(), std::back_inserter(measured),
               [](const Retained& checkpoint) { return checkpoint.metric.has_value(); });
  std::reverse(measured.begin(), measured.end());
  std::stable_sort(measured.begin(), measured.end(),
                   [&](const Retained& left, const Retained& right) {
                     return is_better(*left.metric, *right.metric, best.mode);
                   });
  measured.resize(std::min(measured.size(), static_cast<std::size_t>(best.k)));
  std::vector<int64_t> steps;
  for (const Retained& checkpoint : measured) steps.push_back(checkpoint.step);
  return steps;
}

void require_positive(std::optional<int64_t> number, std::string_view name) {
  if (number && *number < 1) throw std::logic_error(fmt::format("{} must be at least 1", name));
}

}  // namespace

std::optional<double> metric_of(const fs::path& checkpoint, const std::string& name) {
  try {
    for (const auto& [metric, value] : load_manifest(checkpoint).metrics) {
      if (metric == name && !std::isnan(value)) return value;
    }
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return std::nullopt;
}

void KeepBest::describe(config::Schema<KeepBest>& s) {
  s.field("metric", &KeepBest::metric, "the name of a value that validation gives")
      .resume_may_change();
  s.field("mode", &KeepBest::mode, "min: the lowest are the best; max: the highest")
      .choices({{"min", Better::lower}, {"max", Better::higher}})
      .resume_may_change();
  s.field("k", &KeepBest::k, "how many of the best stay")
      .unit("checkpoints")
      .at_least(1)
      .resume_may_change();
}

std::vector<int64_t> to_prune(std::span<const Retained> checkpoints, const Retention& retention) {
  require_positive(retention.keep_last, "keep_last");
  require_positive(retention.keep_every_n_steps, "keep_every_n_steps");
  if (retention.keep_best) require_positive(retention.keep_best->k, "keep_best.k");
  if (!retention.keep_last || checkpoints.empty()) return {};
  std::set<int64_t> kept;
  const auto last = std::min(checkpoints.size(), static_cast<std::size_t>(*retention.keep_last));
  for (const Retained& checkpoint : checkpoints.last(last)) kept.insert(checkpoint.step);
  for (const auto& step : {retention.resumed_step, retention.newest_step}) {
    if (step) kept.insert(*step);
  }
  if (retention.keep_best) {
    for (const int64_t step : best_steps(checkpoints, *retention.keep_best)) kept.insert(step);
  }
  std::vector<int64_t> pruned;
  for (const Retained& checkpoint : checkpoints) {
    const bool is_nth = retention.keep_every_n_steps && checkpoint.step > 0 &&
                        checkpoint.step % *retention.keep_every_n_steps == 0;
    if (!is_nth && !kept.contains(checkpoint.step)) pruned.push_back(checkpoint.step);
  }
  return pruned;
}

std::vector<int64_t> to_prune(const fs::path& checkpoints_dir, Retention retention) {
  if (!retention.newest_step) {
    retention.newest_step = parse_step_folder_name(read_latest(checkpoints_dir));
  }
  std::vector<Retained> checkpoints;
  for (const int64_t step : committed_steps(checkpoints_dir)) {
    Retained checkpoint{.step = step};
    if (retention.keep_best) {
      checkpoint.metric =
          metric_of(checkpoints_dir / step_folder_name(step), retention.keep_best->metric);
    }
    checkpoints.push_back(checkpoint);
  }
  return to_prune(checkpoints, retention);
}

std::vector<std::string> prune(const fs::path& checkpoints_dir, const Retention& retention) {
  std::vector<std::string> warnings;
  for (const int64_t step : to_prune(checkpoints_dir, retention)) {
    const fs::path path = checkpoints_dir / step_folder_name(step);
    const fs::path doomed = fs::path(path).concat(fmt::format("{}{}", kDeletedMark, ::getpid()));
    try {
      remove_path(doomed);
      rename_path(path, doomed);
      remove_path(doomed);
    } catch (const std::exception& error) {
      warnings.push_back(fmt::format("an old checkpoint stays: {}", error.what()));
    }
  }
  return warnings;
}

}  // namespace phalanx
