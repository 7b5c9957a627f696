// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/terminal.h"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "trainer/base/persons_terminal.h"
#include "trainer/base/terminal_width.h"
#include "trainer/base/wrap.h"
#include "trainer/metrics/console.h"

namespace phalanx {
namespace {

constexpr std::string_view kError = "error: ";
constexpr std::string_view kWarning = "warning: ";

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
  return {.width = terminal_width(descriptor), .colour = wants_colour(descriptor)};
}

TextStyle message_style(int descriptor) {
  const bool is_terminal = is_persons_terminal(descriptor);
  return {.width = is_terminal ? terminal_width(descriptor) : 0,
          .colour = wants_colour(descriptor)};
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
