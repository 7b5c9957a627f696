// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "trainer/base/persons_terminal.h"
#include "trainer/base/terminal_width.h"

namespace phalanx {
namespace {

// To the first column; and from the cursor to the line's end.
constexpr std::string_view kToStart = "\r";
constexpr std::string_view kEraseRest = "\x1b[K";

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

Console::Console(int descriptor)
    : descriptor_(descriptor),
      terminal_(is_persons_terminal(descriptor) && environment("TERM") != "dumb"),
      color_(terminal_ && environment("NO_COLOR").empty()) {}

Console::~Console() { end_live(); }

Console& Console::standard() {
  static Console console(STDOUT_FILENO);
  return console;
}

void Console::copy_to(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  copy_.emplace(path);
}

void Console::line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  copy(text);
  print(text);
}

void Console::line_of_copy(std::string_view text) {
  const std::lock_guard lock(mutex_);
  copy(text);
}

void Console::announce(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const bool was_silent = std::exchange(silent_, false);
  const int64_t lost = lost_.records;
  print(text);
  if (lost_.records > lost) {
    lost_.records = lost;
    std::fputs(fmt::format("{}\n", text).c_str(), stderr);
  }
  silent_ = was_silent;
}

Missing Console::take_lost_of_copy() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lost_of_copy_, {});
}

Missing Console::take_lost() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lost_, {});
}

void Console::copy(std::string_view text) {
  if (!copy_) return;
  try {
    copy_->append(fmt::format("{}\n", text));
  } catch (const IoError& error) {
    ++lost_of_copy_.records;
    lost_of_copy_.why = error.what();
  }
}

void Console::print(std::string_view text) {
  if (shown().empty()) return write(fmt::format("{}\n", text));
  write(fmt::format("{0}{1}{2}\n{3}{1}", kToStart, kEraseRest, text, shown()));
}

void Console::live(std::string_view text) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  live_ = text;
  if (overlay_.empty()) show();
}

void Console::overlay(std::string_view text) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  if (text.empty() && overlay_.empty()) return;
  overlay_ = text;
  show();
}

// Without a new text, so that it cannot fail at the end of what was shown for a while.
void Console::show() {
  write(kToStart);
  write(shown());
  write(kEraseRest);
}

void Console::end_live() {
  const std::lock_guard lock(mutex_);
  if (shown().empty()) return;
  write("\n");
  live_.clear();
  overlay_.clear();
}

int Console::width() const { return static_cast<int>(terminal_width(descriptor_)); }

void Console::write(std::string_view text) {
  if (silent_) return;
  int error = is_torn_ ? write_all("\n") : 0;
  if (error == 0) error = write_all(text);
  if (error == 0 || terminal_ || nobody_reads(error)) return;
  ++lost_.records;
  lost_.why = std::generic_category().message(error);
}

// Returns an errno, or 0.
int Console::write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    is_torn_ = written < std::ssize(text);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace phalanx
