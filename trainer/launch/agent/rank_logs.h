// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "trainer/launch/rank_group.h"

namespace phalanx {

/// Which streams of each local rank are meant, as torchrun writes it: "3" for all ranks, "0:1,1:2"
/// for some; 0 neither, 1 stdout, 2 stderr, 3 both.
class ChosenStreams {
 public:
  ChosenStreams() = default;
  /// Throws UserError that begins with `option`.
  ChosenStreams(std::string_view option, std::string_view text);

  bool has_out(int64_t local_rank) const { return (of(local_rank) & 1) != 0; }
  bool has_err(int64_t local_rank) const { return (of(local_rank) & 2) != 0; }
  bool is_empty() const { return all_ == 0 && some_.empty(); }

 private:
  int of(int64_t local_rank) const;

  int all_ = 0;
  std::map<int64_t, int> some_;
};

/// Where an agent's ranks write.
struct LogSettings {
  std::optional<std::filesystem::path> folder;
  ChosenStreams to_files;         ///< --redirects
  ChosenStreams to_both;          ///< --tee: files and the console
  std::set<int64_t> shown_ranks;  ///< Local ranks that the console shows; empty: all.
};

/// The folder of an agent's logs, as torchrun lays it out:
/// FOLDER/RUN_RANDOM/attempt_0/LOCAL_RANK/{stdout.log,stderr.log,error.json}.
class RankLogs {
 public:
  /// Makes the folder where one is needed; without `settings.folder` a temporary one, which goes
  /// with this object unless ranks write to files. `needs_folder`: also without such files. Throws
  /// UserError.
  RankLogs(const LogSettings& settings, const std::string& run_id, bool needs_folder);
  RankLogs(const RankLogs&) = delete;
  RankLogs& operator=(const RankLogs&) = delete;
  ~RankLogs();

  /// Makes an attempt's folders. Throws std::filesystem::filesystem_error.
  void begin_attempt(int64_t attempt, int64_t ranks);
  /// Opens the files. Throws std::system_error.
  RankStreams streams(int64_t rank, int64_t local_rank) const;
  /// The file of a stream of this attempt; empty: it has none.
  std::filesystem::path file_of(int64_t local_rank, bool of_stderr) const;
  /// Where a program of this attempt leaves its error.
  std::filesystem::path error_file(int64_t local_rank) const;

 private:
  LineRoute route(int64_t rank, int64_t local_rank, bool of_stderr) const;
  std::filesystem::path folder_of(int64_t local_rank) const;

  LogSettings settings_;
  std::filesystem::path folder_;  ///< Where this launch writes; empty: nowhere.
  bool is_temporary_ = false;
  int64_t attempt_ = 0;
};

}  // namespace phalanx
