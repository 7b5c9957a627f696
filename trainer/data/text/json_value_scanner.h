// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace phalanx {

/// Finds the end of a JSON value in a text that comes in parts, without reading what it holds: a
/// value that is broken ends somewhere.
class JsonValueScanner {
 public:
  /// Goes on over the next part, which begins with the value's first character or behind the part
  /// before. True at the end of the value; `length` is how much of the part is the value's.
  bool scan(std::string_view part, size_t& length);

 private:
  // Whether a character is the value's last one; `is_behind`: it is behind it.
  bool ends_with(char c, bool& is_behind);

  int64_t depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
};

}  // namespace phalanx
