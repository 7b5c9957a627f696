#include "trainer/metrics/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

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
      terminal_(::isatty(descriptor) == 1 && environment("TERM") != "dumb"),
      color_(terminal_ && environment("NO_COLOR").empty()) {}

Console::~Console() { end_live(); }

Console& Console::standard() {
  static Console console(STDOUT_FILENO);
  return console;
}

void Console::copy_to(const std::filesystem::path& path) {
  const std::lock_guard lock(mutex_);
  copy_.emplace(path, O_WRONLY | O_CREAT | O_APPEND);
}

void Console::line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (copy_) copy_->append(fmt::format("{}\n", text));
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
void Console::show() const {
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

void Console::write(std::string_view text) const {
  if (silent_) return;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    // Nobody reads any more: no reason to end a training run.
    if (written < 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace phalanx
