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
    broadcast_number(ranks_, kStillAtIt);
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Ranks& ranks_;
  Clock::time_point last_ = Clock::now();
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
    } catch (const CommunicationError&) {
      throw;  // of the heartbeat: nobody is left to be told
    } catch (const std::exception&) {
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
