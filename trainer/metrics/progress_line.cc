#include "trainer/commands/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <future>

#include "trainer/core/io/bytes_text.h"

namespace phalanx {

std::string progress_text(const std::string& what, uint64_t done, uint64_t all, double rate) {
  const double share = all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
  std::string text =
      fmt::format("{}  {:.0f}%  {} of {}", what, 100 * share, bytes_text(done), bytes_text(all));
  if (rate <= 0) return text;
  const double left = done < all ? static_cast<double>(all - done) / rate : 0;
  return text + fmt::format(", {}/s, {:.0f} s left", bytes_text(static_cast<uint64_t>(rate)), left);
}

void with_progress(const std::string& what, uint64_t all, const std::function<uint64_t()>& done,
                   const std::function<void()>& work) {
  if (::isatty(STDERR_FILENO) == 0) return work();
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::future<void> working = std::async(std::launch::async, work);
  bool has_shown = false;
  while (working.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
    const std::chrono::duration<double> seconds = Clock::now() - start;
    const uint64_t bytes = done();
    fmt::print(stderr, "\r\x1b[K{}",
               progress_text(what, bytes, all, static_cast<double>(bytes) / seconds.count()));
    std::fflush(stderr);
    has_shown = true;
  }
  if (has_shown) fmt::print(stderr, "\r\x1b[K");
  working.get();
}

}  // namespace phalanx
