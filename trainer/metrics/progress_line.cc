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

#include "trainer/base/display_width.h"
#include "trainer/io/bytes_text.h"

namespace phalanx {
namespace {

void show(Console& console, const std::string& text) {
  if (!console.is_terminal()) return console.line(text);
  console.overlay(first_columns(text, static_cast<std::size_t>(std::max(1, console.width() - 1))));
}

void show_until_stopped(const std::stop_token& stop, Console& console, const std::string& what,
                        const ByteProgress& progress, std::chrono::milliseconds pace) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  const auto is_over = [&] { return stop.stop_requested(); };
  while (!stopped.wait_for(lock, stop, pace, is_over) && !is_over()) {
    show(console, progress_text(what, progress.done, progress.all, progress.rate()));
  }
}

/// Shows from a thread of its own, until the end of its life.
class Shower {
 public:
  Shower(Console& console, const std::string& what, const ByteProgress& progress,
         std::chrono::milliseconds pace)
      : console_(console) {
    try {
      thread_ = std::jthread([&console, &what, &progress, pace](const std::stop_token& stop) {
        try {
          show_until_stopped(stop, console, what, progress, pace);
        } catch (const std::exception&) {
          // What cannot be shown, on a full disk say, is no reason to stop the work.
        }
      });
    } catch (const std::system_error&) {
      // Nor is it where no more threads are to be had.
    }
  }
  Shower(const Shower&) = delete;
  Shower& operator=(const Shower&) = delete;
  ~Shower() {
    if (thread_.joinable()) {
      thread_.request_stop();
      thread_.join();
    }
    console_.overlay("");
  }

 private:
  Console& console_;
  std::jthread thread_;
};

}  // namespace

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

void with_progress(Console& console, const std::string& what, const ByteProgress& progress,
                   const std::function<void()>& work, const ProgressPace& pace) {
  const Shower shower(console, what, progress, console.is_terminal() ? pace.live : pace.line);
  work();
}

}  // namespace phalanx
