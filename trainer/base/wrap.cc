// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/wrap.h"

#include <algorithm>

#include "trainer/base/display_width.h"

namespace phalanx::config {

namespace {

void wrap_line(std::string_view line, std::size_t width, std::size_t indent, std::string& result) {
  std::size_t room = width;
  while (true) {
    const std::size_t end = first_columns(line, room).size();
    if (end == line.size()) break;
    std::size_t blank = line.rfind(' ', end);
    // A word that is longer than the line goes over its end.
    if (blank == std::string_view::npos || line.find_first_not_of(' ') > blank) {
      blank = line.find(' ', std::max(end, line.find_first_not_of(' ')));
    }
    if (blank == std::string_view::npos) break;
    const std::size_t next = line.find_first_not_of(' ', blank);
    if (next == std::string_view::npos) break;
    result += std::string(line.substr(0, blank)) + "\n" + std::string(indent, ' ');
    line.remove_prefix(next);
    room = width > indent ? width - indent : 1;
  }
  result += line;
}

}  // namespace

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  while (true) {
    const std::size_t end = text.find('\n');
    wrap_line(text.substr(0, end), width, indent, result);
    if (end == std::string_view::npos) return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace phalanx::config
