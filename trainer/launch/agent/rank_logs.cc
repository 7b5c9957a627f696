// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/rank_logs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <charconv>
#include <system_error>
#include <utility>

#include "trainer/base/take_until.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> number_in(std::string_view text, int64_t high) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && number >= 0 && number <= high ? std::optional(number) : std::nullopt;
}

// A folder that no other launch has: NAME_ and six random letters.
fs::path make_folder(const fs::path& parent, const std::string& name) {
  fs::create_directories(parent);
  std::string path = (parent / (name + "_XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category());
  }
  return path;
}

// Nothing of a run's name leads out of the folder.
std::string as_file_name(std::string name) {
  for (char& letter : name) {
    if (letter == '/') letter = '_';
  }
  return name;
}

}  // namespace

ChosenStreams::ChosenStreams(std::string_view option, std::string_view text) {
  constexpr int64_t kMostRanks = 1 << 20;
  if (const auto all = number_in(text, 3)) {
    all_ = static_cast<int>(*all);
    return;
  }
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view value = take_until(rest, ',');
    const auto local_rank = number_in(take_until(value, ':'), kMostRanks);
    const auto streams = number_in(value, 3);
    if (!local_rank || !streams) {
      throw UserError(fmt::format(
          "{}='{}': write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or one of them for some "
          "local ranks: 0:3,1:2",
          option, text));
    }
    some_[*local_rank] = static_cast<int>(*streams);
  }
}

int ChosenStreams::of(int64_t local_rank) const {
  const auto found = some_.find(local_rank);
  return found == some_.end() ? all_ : found->second;
}

RankLogs::RankLogs(const LogSettings& settings, const std::string& run_id, bool needs_folder)
    : settings_(settings) {
  const bool writes_files = !settings.to_files.is_empty() || !settings.to_both.is_empty();
  if (!writes_files && !needs_folder) return;
  is_temporary_ = !writes_files && !settings.folder;
  const fs::path parent = settings.folder.value_or(fs::temp_directory_path());
  try {
    folder_ = make_folder(parent, as_file_name(run_id));
  } catch (const std::system_error& error) {
    throw UserError(fmt::format("--log-dir: the folder '{}' cannot be written: {}", parent.string(),
                                error.code().message()));
  }
  if (writes_files && !settings.folder) {
    fmt::print(stderr, "the ranks' logs are in {}\n", folder_.string());
  }
}

RankLogs::~RankLogs() {
  std::error_code ignored;
  if (is_temporary_) fs::remove_all(folder_, ignored);
}

void RankLogs::begin_attempt(int64_t attempt, int64_t ranks) {
  attempt_ = attempt;
  if (folder_.empty()) return;
  for (int64_t rank = 0; rank < ranks; ++rank) fs::create_directories(folder_of(rank));
}

fs::path RankLogs::folder_of(int64_t local_rank) const {
  return folder_ / fmt::format("attempt_{}", attempt_) / std::to_string(local_rank);
}

fs::path RankLogs::error_file(int64_t local_rank) const {
  return folder_.empty() ? fs::path() : folder_of(local_rank) / "error.json";
}

fs::path RankLogs::file_of(int64_t local_rank, bool of_stderr) const {
  const auto has = [&](const ChosenStreams& streams) {
    return of_stderr ? streams.has_err(local_rank) : streams.has_out(local_rank);
  };
  if (!has(settings_.to_files) && !has(settings_.to_both)) return {};
  return folder_of(local_rank) / (of_stderr ? "stderr.log" : "stdout.log");
}

LineRoute RankLogs::route(int64_t rank, int64_t local_rank, bool of_stderr) const {
  const RankStreams console = streams_to_console(rank);
  LineRoute route{.prefix = console.out.prefix};
  const fs::path file = file_of(local_rank, of_stderr);
  if (!file.empty()) {
    route.file = take_descriptor(
        ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644), "open a rank's log");
    route.is_shown =
        of_stderr ? settings_.to_both.has_err(local_rank) : settings_.to_both.has_out(local_rank);
  }
  const auto& shown = settings_.shown_ranks;
  if (!shown.empty() && !shown.contains(local_rank)) route.is_shown = false;
  return route;
}

RankStreams RankLogs::streams(int64_t rank, int64_t local_rank) const {
  return {.out = route(rank, local_rank, false), .err = route(rank, local_rank, true)};
}

}  // namespace phalanx
