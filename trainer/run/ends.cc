// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "trainer/loop/next_command.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/starts.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The signal that killed a rank, or that all obeyed; 0: none.
int signal_of(const RankOutcome& outcome) {
  if (!outcome.reason.empty()) return 0;  // the launcher's own, which is no stranger's word
  const bool obeyed = outcome.message.empty() && outcome.exit_code > kSignalBase;
  return obeyed ? outcome.exit_code - kSignalBase : outcome.signal;
}

bool has_end(const fs::path& exp_dir, int64_t start) {
  const std::vector<std::string> ends = lines_of(exp_dir / kEndsFile);
  return std::any_of(ends.begin(), ends.end(), [&](const std::string& line) {
    const Json end = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    return end.is_object() && end.contains("start") && end["start"] == start;
  });
}

// "of 2026-11-23T10:00:00Z, process 12 on host"; empty for a torn line.
std::string description_of(const PastStart& start) {
  if (start.time.empty() || start.pid.empty() || start.host.empty()) return "";
  return fmt::format(" of {}, process {} on {},", start.time, start.pid, start.host);
}

}  // namespace

std::string format_end(const End& end) {
  Json json;
  json["time"] = utc_now();
  json["start"] = end.start;
  json["exit_code"] = end.outcome.exit_code;
  if (const int signal = signal_of(end.outcome); signal != 0) json["signal"] = signal;
  if (!end.outcome.reason.empty()) json["reason"] = end.outcome.reason;
  if (!end.has_begun) json["began"] = false;
  json["step"] = end.step;
  if (end.outcome.rank) json["rank"] = *end.outcome.rank;
  if (!end.outcome.message.empty()) json["error"] = end.outcome.message;
  json["saved"] = end.has_saved;
  if (!end.checkpoint.empty()) json["checkpoint"] = end.checkpoint;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void append_end(const fs::path& exp_dir, const std::string& line) {
  append_line(exp_dir / kEndsFile, line);
}

std::string where_it_stands(const std::string& exp_dir, const config::Node& resolved,
                            const End& end) {
  const std::string from = end.checkpoint.empty()
                               ? "no checkpoint was saved: the run begins again at step 0"
                               : "the newest checkpoint is " + end.checkpoint;
  return fmt::format("{} {} finished; {}{}\nnext: {}", end.step,
                     end.step == 1 ? "step was" : "steps were", from,
                     signal_of(end.outcome) == 0 ? "; mend the cause first" : "",
                     command_to_resume(exp_dir, resolved));
}

std::optional<std::string> last_start_without_end(const fs::path& exp_dir) {
  const std::vector<PastStart> starts = past_starts(exp_dir);
  if (starts.empty() || has_end(exp_dir, std::ssize(starts))) return std::nullopt;
  return fmt::format("the last start{} left no record of its end (killed?)",
                     description_of(starts.back()));
}

}  // namespace phalanx
