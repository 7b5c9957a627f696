#include "trainer/commands/terminal.h"

#include <fmt/color.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "trainer/config/wrap.h"
#include "trainer/metrics/console.h"

namespace phalanx {
namespace {

constexpr std::size_t kUsualWidth = 80;
constexpr std::string_view kError = "error: ";
constexpr std::string_view kWarning = "warning: ";

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

std::size_t width_of_page(int descriptor) {
  return width_of_terminal(descriptor).value_or(width_of_environment().value_or(kUsualWidth));
}

bool wants_colour(int descriptor) { return Console(descriptor).color(); }

// Coloured once it is wrapped: wrapping counts characters.
std::string labelled(std::string_view label, fmt::terminal_color colour, std::string_view message,
                     const TextStyle& style) {
  std::string text = fmt::format("{}{}{}", label, message, message.ends_with('\n') ? "" : "\n");
  if (style.width > 0) text = config::wrap(text, style.width, 4);
  if (!style.colour) return text;
  const std::string painted =
      fmt::format(fmt::fg(colour) | fmt::emphasis::bold, "{}", text.substr(0, label.size()));
  return painted + text.substr(label.size());
}

void print(const std::string& text) {
  std::fflush(stdout);
  fmt::print(stderr, "{}", text);
}

}  // namespace

std::string TextStyle::heading(std::string_view text) const {
  return colour ? fmt::format(fmt::emphasis::bold, "{}", text) : std::string(text);
}

TextStyle page_style(int descriptor) {
  return {.width = width_of_page(descriptor), .colour = wants_colour(descriptor)};
}

TextStyle message_style(int descriptor) {
  const bool is_terminal = ::isatty(descriptor) == 1;
  return {.width = is_terminal ? width_of_page(descriptor) : 0, .colour = wants_colour(descriptor)};
}

std::string error_message(std::string_view message, const TextStyle& style) {
  return labelled(kError, fmt::terminal_color::red, message, style);
}

std::string warning_message(std::string_view message, const TextStyle& style) {
  return labelled(kWarning, fmt::terminal_color::yellow, message, style);
}

void print_error(std::string_view message) {
  print(error_message(message, message_style(STDERR_FILENO)));
}

void print_warning(std::string_view message) {
  print(warning_message(message, message_style(STDERR_FILENO)));
}

std::size_t message_width() {
  const std::size_t width = message_style(STDERR_FILENO).width;
  return width == 0 ? 0 : width - std::min(width - 1, kWarning.size());
}

}  // namespace phalanx
