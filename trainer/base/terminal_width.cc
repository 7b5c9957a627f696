// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/terminal_width.h"

#include <sys/ioctl.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>

namespace phalanx {
namespace {

constexpr std::size_t kUsualWidth = 80;

std::optional<std::size_t> width_of_terminal(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

// COLUMNS, where it is a number that a page can have.
std::optional<std::size_t> width_of_environment() {
  const char* columns = std::getenv("COLUMNS");
  if (columns == nullptr) return std::nullopt;
  const std::string_view text = columns;
  std::size_t width = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || width < 20 || width > 1000) return std::nullopt;
  return width;
}

}  // namespace

std::size_t terminal_width(int descriptor) {
  return width_of_terminal(descriptor).value_or(width_of_environment().value_or(kUsualWidth));
}

}  // namespace phalanx
