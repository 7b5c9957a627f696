// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace phalanx {

/// Records that a log lacks, and why.
struct Missing {
  int64_t records = 0;
  std::string why;  ///< Why the last one is.
};

/// Whether an errno of write(2) says that nobody reads: the reader of a pipe is gone, or the
/// descriptor was never open. Then nothing is missing anywhere.
bool nobody_reads(int error);

/// Counts the records that logs lack because they could not be written (a full disk, a quota, a
/// faulty drive): a lost record ends no run. Warns at once, then at most once a minute, and once at
/// the end.
class LostRecords {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  using Tell = std::function<void(const std::string& line)>;

  static constexpr std::chrono::minutes kPause{1};  ///< Between two reports.

  /// `tell` shows a line to people, and must not throw.
  explicit LostRecords(Tell tell, Clock clock = std::chrono::steady_clock::now);

  /// Writes one record. An IoError or a std::system_error is counted as the loss of it; what else
  /// `write` throws is passed on.
  void attempt(const std::string& log, const std::function<void()>& write);

  /// Counts what `log` ("the sink jsonl") has lost; perhaps nothing.
  void add(const std::string& log, const Missing& missing);

  /// Warns of each log that has lost more since the last warning, if that is a minute ago.
  void report_if_due();

  /// Warns once more of each log that lacks something, with its total, and forgets them.
  void report_at_end();

 private:
  struct Told {
    Missing missing;
    bool is_told = false;
  };

  Tell tell_;
  Clock clock_;
  std::map<std::string, Told> losses_;  ///< By log.
  std::optional<std::chrono::steady_clock::time_point> told_at_;
};

}  // namespace phalanx
