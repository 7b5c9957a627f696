#include "trainer/config/wrap.h"

#include <algorithm>

namespace phalanx::config {

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// The bytes of a line's first `count` characters.
std::size_t bytes_of(std::string_view line, std::size_t count) {
  std::size_t end = 0;
  while (end < line.size() && (count > 0 || !begins_character(line[end]))) {
    if (begins_character(line[end])) --count;
    ++end;
  }
  return end;
}

void wrap_line(std::string_view line, std::size_t width, std::size_t indent, std::string& result) {
  std::size_t room = width;
  while (character_count(line) > room) {
    const std::size_t end = bytes_of(line, room);
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

std::size_t character_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

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
