// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/json_value_scanner.h"

#include <utility>

namespace phalanx {

bool JsonValueScanner::scan(std::string_view part, size_t& length) {
  for (length = 0; length < part.size(); ++length) {
    bool is_behind = false;
    if (!ends_with(part[length], is_behind)) continue;
    if (!is_behind) ++length;
    return true;
  }
  return false;
}

bool JsonValueScanner::ends_with(char c, bool& is_behind) {
  if (in_string_) {
    if (std::exchange(is_escaped_, false)) return false;
    is_escaped_ = c == '\\';
    in_string_ = c != '"';
    return !in_string_ && depth_ == 0;
  }
  switch (c) {
    case '"':
      in_string_ = true;
      return false;
    case '{':
    case '[':
      ++depth_;
      return false;
    case '}':
    case ']':
      is_behind = depth_ == 0;
      return is_behind || --depth_ == 0;
    case ',':
    case ' ':
    case '\t':
    case '\r':
    case '\n':
      is_behind = true;
      return depth_ == 0;
    default:
      return false;
  }
}

}  // namespace phalanx
