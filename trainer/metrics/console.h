// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/io/log_file.h"
#include "trainer/io/lost_records.h"

namespace phalanx {

/// The one place that writes to the screen while a run is going on, so that lines and the live line
/// do not tear each other. Safe to use from several threads. What cannot be written, to the screen
/// or to a copy, is counted and left out: it ends no run.
class Console {
 public:
  /// Writes to an open descriptor, which stays the caller's. A live line is shown when that is a
  /// person's terminal that can move its cursor (TERM is not "dumb").
  explicit Console(int descriptor);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  /// Standard output.
  static Console& standard();

  /// From now on lines go to this file too, at its end. Throws IoError.
  void copy_to(const std::filesystem::path& path);

  /// From now on nothing goes to the descriptor: a rank whose lines are in its file alone.
  void silence() { silent_ = true; }

  /// Prints a line for good; a live line moves below it. `text` carries no line end, or several
  /// lines.
  void line(std::string_view text);

  /// Adds a line to the copy alone: one that another process prints on the screen.
  void line_of_copy(std::string_view text);

  /// Prints a line on the screen alone, also where the console is silent; on standard error where
  /// the descriptor takes nothing.
  void announce(std::string_view text);

  /// The lines that the copy lacks since the last call.
  Missing take_lost_of_copy();
  /// Those that the descriptor lacks. A terminal, and a reader that is gone, lack nothing.
  Missing take_lost();

  /// Shows `text` in place of the live line before; it must fit the width. Without a terminal
  /// nothing happens.
  void live(std::string_view text);

  /// Shows `text` above the live line, which is hidden until this is called with nothing.
  void overlay(std::string_view text);

  /// Leaves the live line as it stands and goes to the next line.
  void end_live();

  /// Whether there is a live line.
  bool is_terminal() const { return terminal_; }
  /// Whether colours are wanted: a terminal, and NO_COLOR is unset or empty (no-color.org).
  bool color() const { return color_; }
  /// Columns, as terminal_width() says.
  int width() const;

 private:
  const std::string& shown() const { return overlay_.empty() ? live_ : overlay_; }
  void show();
  void copy(std::string_view text);
  void print(std::string_view text);
  void write(std::string_view text);
  int write_all(std::string_view text);

  std::mutex mutex_;
  int descriptor_;
  bool terminal_;
  bool silent_ = false;
  bool is_torn_ = false;  ///< The screen has half of what was written last.
  std::optional<LogFile> copy_;
  Missing lost_of_copy_;
  Missing lost_;
  bool color_;
  std::string live_;
  std::string overlay_;  ///< In its place, for a while.
};

}  // namespace phalanx
