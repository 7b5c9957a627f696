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
  std::string why;  ///< Of the last one.
};

/// Whether an errno of write(2) says that nobody reads: the reader of a pipe is gone, or the
/// descriptor was never open. What is written there is lost to nobody.
bool nobody_reads(int error);

/// What logs lack because it could not be written: on a full disk, beyond a quota, on a faulty
/// drive. No log is worth the run that it is of, so records are counted in place of an error, and
/// that is told at once, then at most once a minute, and once at the end.
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

  /// Tells of each log that has lost more since the last report, if that is a minute ago.
  void tell_if_due();

  /// Tells how much each log lacks in the end; nothing where none lacks anything. Then all is
  /// forgotten.
  void tell_in_the_end();

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
