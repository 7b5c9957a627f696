// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/lost_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/starts.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A replacement that was cut short is a checkpoint, too: the run puts it back.
bool holds_checkpoint(const fs::path& checkpoints) {
  std::error_code error;
  if (!fs::is_directory(checkpoints, error)) return false;
  if (!committed_steps(checkpoints).empty()) return true;
  for (auto entry = fs::directory_iterator(checkpoints, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().find(kReplacedMark) != std::string::npos) return true;
  }
  return false;
}

template <class T>
std::optional<T> value_of(const Json& object, const char* key) {
  try {
    const auto found = object.find(key);
    return found == object.end() ? std::nullopt : std::optional(found->get<T>());
  } catch (const Json::exception&) {
    return std::nullopt;  // of another kind, as a hand or another program wrote it
  }
}

std::optional<std::string> told_by_ends(const fs::path& exp_dir) {
  const std::vector<Json> ends = objects_of(exp_dir / kEndsFile);
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    if (const auto name = value_of<std::string>(*end, "checkpoint")) {
      return fmt::format("{} names {}", kEndsFile, *name);
    }
  }
  return std::nullopt;
}

std::optional<std::string> told_by_starts(const fs::path& exp_dir) {
  const std::vector<PastStart> starts = past_starts(exp_dir);
  for (auto start = starts.rbegin(); start != starts.rend(); ++start) {
    if (start->step.value_or(0) <= 0) continue;
    return fmt::format("{} has a start at step {}", kStartsFile, *start->step);
  }
  return std::nullopt;
}

std::optional<config::Node> kept_config(const fs::path& exp_dir) {
  config::Diagnostics unheard;
  try {
    config::Node tree = config::read_file(exp_dir / kConfigFile, unheard);
    return unheard.empty() ? std::optional(std::move(tree)) : std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::string text_at(const config::Node& tree, const std::string& path) {
  const config::Node* node = tree.find_path(path);
  return node != nullptr && node->is_scalar() ? node->text : "";
}

// The step behind which a run that was not told of a failed save has saved one: a save in the
// background ends before the next one begins.
std::optional<int64_t> surely_saved_before(const config::Node& config) {
  const std::string every = text_at(config, "checkpoint.save_every_n_steps");
  const bool may_fail = text_at(config, "checkpoint.on_error") == "warn" ||
                        text_at(config, "checkpoint.while_saving") == "skip";
  if (may_fail || every.empty() || every.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  constexpr std::size_t kDigits = 15;  // more is no step that a run reaches
  if (every.size() > kDigits) return std::nullopt;
  const int64_t steps = std::stoll(every);
  return text_at(config, "checkpoint.async") == "true" ? 2 * steps : steps;
}

// After kill -9 no end names a checkpoint, and the rows say how far the run came.
std::optional<std::string> told_by_metrics(const fs::path& exp_dir) {
  const auto config = kept_config(exp_dir);
  if (!config) return std::nullopt;
  const auto saved_before = surely_saved_before(*config);
  const std::string logs = text_at(*config, "log_dir_name");
  if (!saved_before || logs.empty()) return std::nullopt;
  int64_t reached = 0;
  for (const Json& row : objects_of(exp_dir / logs / "metrics.jsonl")) {
    reached = std::max(reached, value_of<int64_t>(row, "step").value_or(0));
  }
  if (reached <= *saved_before) return std::nullopt;
  return fmt::format("{}/metrics.jsonl reaches step {}, and the run saves every {} steps", logs,
                     reached, text_at(*config, "checkpoint.save_every_n_steps"));
}

}  // namespace

std::optional<std::string> lost_checkpoints(const fs::path& exp_dir) {
  std::error_code unknown;
  if (!fs::is_directory(exp_dir, unknown)) return std::nullopt;  // what makes it says what is wrong
  const fs::path checkpoints = exp_dir / kCheckpointsFolder;
  if (holds_checkpoint(checkpoints)) return std::nullopt;
  if (const std::string latest = read_latest(checkpoints); !latest.empty()) {
    return fmt::format("{}/{} names {}", kCheckpointsFolder, kLatestFile, latest);
  }
  if (auto told = told_by_ends(exp_dir)) return told;
  if (auto told = told_by_starts(exp_dir)) return told;
  return told_by_metrics(exp_dir);
}

std::optional<std::string> require_none_lost(const fs::path& exp_dir,
                                             const config::Node& resolved) {
  const auto lost = lost_checkpoints(exp_dir);
  if (!lost) return std::nullopt;
  if (text_at(resolved, "checkpoint.resume") == "if_any") {
    return fmt::format(
        "the checkpoints of {} are gone ({}): it begins again at step 0, and its earlier rows go "
        "to metrics.replaced.jsonl",
        exp_dir.string(), *lost);
  }
  throw UserError(fmt::format(
      "{} holds a run that has saved checkpoints ({}), and none is there: bring one back, choose "
      "another exp_dir, or write checkpoint.resume=if_any to begin anew at step 0, with the "
      "earlier logs set aside",
      exp_dir.string(), *lost));
}

}  // namespace phalanx
