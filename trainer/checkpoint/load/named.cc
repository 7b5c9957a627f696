// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/named.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/retention/best.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

fs::path checkpoints_of(const fs::path& run) {
  std::error_code unknown;
  const fs::path folder = run / "checkpoints";
  return fs::is_directory(folder, unknown) ? folder : run;
}

std::optional<int64_t> step_in(std::string_view text) {
  int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() && step >= 0;
  return is_whole ? std::optional(step) : std::nullopt;
}

KeepBest rule_of(const fs::path& checkpoints) {
  return keep_best_of(checkpoints).value_or(KeepBest());
}

int64_t best_step(const fs::path& run, const fs::path& checkpoints) {
  if (const auto step = best_step_of(checkpoints)) return *step;
  throw UserError(
      fmt::format("no checkpoint in '{}' has the metric '{}', so none is the best: those that are "
                  "saved after a "
                  "validation have metrics, and checkpoint.keep_best saves after each",
                  run.string(), rule_of(checkpoints).metric));
}

void require_step(int64_t step, const fs::path& run, const fs::path& checkpoints) {
  std::vector<int64_t> steps = committed_steps(checkpoints);
  if (std::find(steps.begin(), steps.end(), step) != steps.end()) return;
  if (steps.empty()) throw UserError(fmt::format("'{}' has no checkpoint", run.string()));
  std::sort(steps.begin(), steps.end());
  throw UserError(fmt::format("'{}' has no checkpoint of step {}: its steps are {}", run.string(),
                              step, fmt::join(steps, ", ")));
}

[[noreturn]] void refuse_which(std::string_view which, const fs::path& run) {
  throw UserError(
      fmt::format("'{0}@{1}' names no checkpoint: behind @ stands best or a step, as in {0}@best; "
                  "the newest is "
                  "{0}",
                  run.string(), which));
}

}  // namespace

std::optional<int64_t> best_step_of(const fs::path& checkpoints_dir) {
  const auto best = best_checkpoint(checkpoints_dir, rule_of(checkpoints_dir));
  return best ? std::optional(best->step) : std::nullopt;
}

std::string note_of_better(const fs::path& named, const fs::path& taken) {
  std::error_code unknown;
  if (!fs::is_directory(named, unknown) || fs::equivalent(named, taken, unknown)) return {};
  const fs::path checkpoints = taken.parent_path();
  const auto by = keep_best_of(checkpoints);
  const auto best = by ? best_checkpoint(checkpoints, *by) : std::nullopt;
  const auto step = parse_step_folder_name(taken.filename().string());
  if (!best || !step || best->step == *step) return {};
  return fmt::format(
      "step {} of '{}' is taken, the newest; the best by {} is step {} ({:.5g}): {}@best", *step,
      named.string(), by->metric, best->step, best->value, named.string());
}

fs::path named_checkpoint(const fs::path& path) {
  std::error_code unknown;
  const std::string text = path.string();
  const auto at = text.rfind('@');
  if (at == std::string::npos || fs::exists(path, unknown)) return path;
  const fs::path run = text.substr(0, at);
  const std::string_view which = std::string_view(text).substr(at + 1);
  const auto step = step_in(which);
  if (!fs::is_directory(run, unknown)) return path;
  if (which != "best" && !step) refuse_which(which, run);
  const fs::path checkpoints = checkpoints_of(run);
  if (!step) return checkpoints / step_folder_name(best_step(run, checkpoints));
  require_step(*step, run, checkpoints);
  return checkpoints / step_folder_name(*step);
}

}  // namespace phalanx
