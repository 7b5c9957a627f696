// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/at_length.h"

#include <chrono>
#include <cstdint>
#include <exception>

#include "trainer/ranks/collectives/numbers.h"

namespace phalanx {
namespace {

constexpr int64_t kStillAtIt = 1;
constexpr int64_t kEnded = 0;

/// Rank 0's side.
class Heartbeat {
 public:
  explicit Heartbeat(const Ranks& ranks) : ranks_(ranks) {}

  void beat_if_due() {
    const auto now = Clock::now();
    if (now - last_ < ranks_.timeout() / 4) return;
    is_lost_ = true;
    broadcast_number(ranks_, kStillAtIt);
    is_lost_ = false;
    last_ = now;
  }

  /// Whether one has not reached the others: nobody is left to be told.
  bool is_lost() const { return is_lost_; }

 private:
  using Clock = std::chrono::steady_clock;

  const Ranks& ranks_;
  Clock::time_point last_ = Clock::now();
  bool is_lost_ = false;
};

}  // namespace

void on_first_rank_at_length(const Ranks& ranks,
                             const std::function<void(const StillAtIt& still_at_it)>& action) {
  if (ranks.is_single_rank()) return action([] {});
  std::exception_ptr error;
  if (ranks.is_first()) {
    Heartbeat heartbeat(ranks);
    try {
      action([&] { heartbeat.beat_if_due(); });
    } catch (const std::exception&) {
      if (heartbeat.is_lost()) throw;
      error = std::current_exception();
    }
    broadcast_number(ranks, kEnded);
  } else {
    while (broadcast_number(ranks, kEnded) == kStillAtIt) continue;
  }
  on_first_rank(ranks, [&] {
    if (error) std::rethrow_exception(error);
  });
}

}  // namespace phalanx
