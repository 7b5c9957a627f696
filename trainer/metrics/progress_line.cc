// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "trainer/base/display_width.h"
#include "trainer/io/bytes_text.h"
#include "trainer/metrics/progress_format.h"

namespace phalanx {
namespace {

void show(Console& console, const std::string& text) {
  if (!console.is_terminal()) return console.line(text);
  console.overlay(first_columns(text, static_cast<std::size_t>(std::max(1, console.width() - 1))));
}

std::string text_of(const std::string& what, const WorkProgress& progress) {
  const char* unit = progress.unit;
  if (unit == nullptr) return progress_text(what, progress.done, progress.all, progress.rate());
  return progress_text(what, unit, progress.done, progress.all, progress.rate());
}

struct Pauses {
  std::chrono::milliseconds first;
  std::chrono::milliseconds next;
};

void show_until_stopped(const std::stop_token& stop, Console& console, const std::string& what,
                        const WorkProgress& progress, const Pauses& pauses) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  const auto is_over = [&] { return stop.stop_requested(); };
  auto pause = pauses.first;
  while (!stopped.wait_for(lock, stop, pause, is_over) && !is_over()) {
    show(console, text_of(what, progress));
    pause = pauses.next;
  }
}

}  // namespace

ShownProgress::ShownProgress(Console& console, std::string what, const WorkProgress& progress,
                             const ProgressPace& pace)
    : console_(console), what_(std::move(what)) {
  const Pauses pauses =
      console.is_terminal() ? Pauses{pace.live, pace.live} : Pauses{pace.first_line, pace.line};
  try {
    thread_ = std::jthread([this, &progress, pauses](const std::stop_token& stop) {
      try {
        show_until_stopped(stop, console_, what_, progress, pauses);
      } catch (const std::exception&) {
        // What cannot be shown, on a full disk say, is no reason to stop the work.
      }
    });
  } catch (const std::system_error&) {
    // Nor is it where no more threads are to be had.
  }
}

ShownProgress::~ShownProgress() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  console_.overlay("");
}

std::string progress_text(const std::string& what, uint64_t done, uint64_t all, double rate) {
  if (all == 0) return what;
  done = std::min(done, all);
  const double share = static_cast<double>(done) / static_cast<double>(all);
  std::string text =
      fmt::format("{}  {:.0f}%  {} of {}", what, 100 * share, bytes_text(done), bytes_text(all));
  if (rate <= 0) return text;
  const double left = static_cast<double>(all - done) / rate;
  return text + fmt::format(", {}/s, {:.0f} s left", bytes_text(static_cast<uint64_t>(rate)), left);
}

std::string progress_text(const std::string& what, const char* unit, uint64_t done, uint64_t all,
                          double rate) {
  if (all == 0) return what;
  done = std::min(done, all);
  const double share = static_cast<double>(done) / static_cast<double>(all);
  std::string text = fmt::format("{}  {:.0f}%  {} of {} {}", what, 100 * share, done, all, unit);
  if (rate <= 0) return text;
  return text + fmt::format(", {} left", format_duration(static_cast<double>(all - done) / rate));
}

void with_progress(Console& console, const std::string& what, const WorkProgress& progress,
                   const std::function<void()>& work, const ProgressPace& pace) {
  const ShownProgress shown(console, what, progress, pace);
  work();
}

}  // namespace phalanx
