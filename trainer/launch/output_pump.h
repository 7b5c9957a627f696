// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "trainer/base/descriptor.h"
#include "trainer/io/lost_records.h"

namespace phalanx {

/// A stream of the launcher (its stdout, its stderr) that lines of ranks go to. Whoever reads it
/// may be slow or gone, and the disk that it goes to may be full: the launcher goes on with its
/// other work, and output that has no reader left is dropped.
class Outlet {
 public:
  /// The descriptor stays the caller's; it may be a blocking one and shared with others.
  explicit Outlet(int descriptor) : descriptor_(descriptor) {}

  /// Adds whole lines.
  void add(std::string_view text);
  /// Writes what can be written without waiting. Needs SIGPIPE to be ignored.
  void write();
  /// Whether nothing waits to be written.
  bool is_idle() const { return waiting_.empty(); }
  int descriptor() const { return descriptor_; }
  /// The lines that were dropped since the last call, though somebody reads.
  Missing take_lost();

 private:
  bool accepts() const;
  std::string_view next_piece() const;
  void drop(int error);

  int descriptor_;
  std::string waiting_;
  bool is_torn_ = false;  ///< Half of a line was written, and the rest is waiting or dropped.
  Missing lost_;
};

/// Where the lines of a stream of a rank go.
struct LineRoute {
  std::string prefix = {};  ///< Before each line that is shown.
  bool is_shown = true;     ///< At the launcher's outlet.
  Descriptor file = {};     ///< A log that takes each line, too; none: no log.
};

/// Brings one stream of a rank to an outlet and a log, line by line.
class LinePump {
 public:
  static constexpr std::size_t kKeptLines = 20;

  /// `source` may be none: then nothing comes. The outlet must live as long as the pump.
  LinePump(Descriptor source, LineRoute route, Outlet& outlet);

  /// Reads once what the rank has written, without waiting. At the end of the stream, or with
  /// nothing more to read of a rank that has ended, passes on an unfinished last line and closes.
  void pump(bool rank_has_ended);

  bool is_open() const { return source_.is_open(); }
  int descriptor() const { return source_.number(); }
  const Outlet& outlet() const { return *outlet_; }
  /// The newest kKeptLines of what came.
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  void pass_on(std::string_view text);
  void end_line();
  void write_log();
  void keep_line();

  Descriptor source_;
  LineRoute route_;
  Outlet* outlet_;
  std::string line_;  ///< Read, but its end was not; 64 KiB at most.
  std::deque<std::string> last_lines_;
};

}  // namespace phalanx
