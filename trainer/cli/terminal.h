// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace phalanx {

/// How text is laid out for the stream that it goes to.
struct TextStyle {
  std::size_t width = 0;  ///< Characters a line; 0: any number.
  bool colour = false;

  /// What stands above a list.
  std::string heading(std::string_view text) const;
};

/// The style of what is read like a page, for an open descriptor: as wide as terminal_width() says.
/// Colour where a terminal can show it and NO_COLOR is unset or empty (no-color.org).
TextStyle page_style(int descriptor);

/// The style of errors and warnings, for an open descriptor: that of a page on a terminal;
/// elsewhere, where programs read them, lines stay whole.
TextStyle message_style(int descriptor);

/// "error: MESSAGE", wrapped, with one line end.
std::string error_message(std::string_view message, const TextStyle& style);

/// "warning: MESSAGE", wrapped, with one line end.
std::string warning_message(std::string_view message, const TextStyle& style);

/// Writes error_message() to standard error, behind what standard output has so far.
void print_error(std::string_view message);

/// Writes warning_message() to standard error, behind what standard output has so far.
void print_warning(std::string_view message);

/// The characters a line that are not wrapped by these two; 0: any number.
std::size_t message_width();

}  // namespace phalanx
