// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "trainer/base/said_by.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/ranks/ranks.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

constexpr const char* kFirstFailure = "failure";
constexpr auto kPatience = std::chrono::milliseconds(1000);  // others notice within milliseconds
constexpr auto kStorePatience = 3 * kPatience;               // for all that is asked of the store
constexpr int64_t kMaxNamed = 16;

std::string wait_key(int64_t rank) { return fmt::format("waiting/{}", rank); }

// What a rank that fails says through the ranks' store, and learns there.
struct Reporter {
  std::shared_ptr<KeyValueStore> store;
  int64_t rank = 0;
  int64_t world_size = 1;

  Failure operator()(Failure failure) const {
    return failure.caused_by_peer ? report_consequence(failure) : report_own(failure);
  }

 private:
  Failure report_own(Failure failure) const {
    // Several ranks may say the same of one of them: the number of this one comes before it.
    const std::string mine = fmt::format("{}\n{}", rank, said_by(rank, failure.message));
    failure.is_first = store->set_if_absent(kFirstFailure, mine) == mine;
    return failure;
  }

  Failure report_consequence(Failure failure) const {
    store->set(wait_key(rank), failure.message);
    if (const auto cause = store->get(kFirstFailure, kPatience / 10)) {
      failure.is_first = false;
      failure.message = cause->substr(cause->find('\n') + 1);
      return failure;
    }
    failure = report_own(failure);
    if (failure.is_first) failure.message += words_of_others();
    return failure;
  }

  // What the other ranks were waiting for when this one gave up: the one that says nothing is the
  // one to look at.
  std::string words_of_others() const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::string text;
    for (int64_t other = 0; other < std::min(world_size, kMaxNamed); ++other) {
      if (other == rank) continue;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      const auto word = store->get(wait_key(other), std::max(left, std::chrono::milliseconds(0)));
      text += "\n  " + said_by(other, word.value_or("gave no sign of life"));
    }
    return text;
  }
};

}  // namespace

bool is_communication_error(const std::exception& error) {
  return dynamic_cast<const CommunicationError*>(&error) != nullptr ||
         dynamic_cast<const c10::DistError*>(&error) != nullptr || is_gloo_io_error(error);
}

Failure report_failure(const Ranks& ranks, const std::exception& error, std::string message) {
  Failure failure{.message = std::move(message), .caused_by_peer = is_communication_error(error)};
  if (ranks.is_single_rank()) return failure;
  if (failure.caused_by_peer && dynamic_cast<const CommunicationError*>(&error) == nullptr) {
    // As other threads see it: c10d's watchdog has one of its own.
    const std::string activity = ranks.group().activity->shared().text();
    failure.message = fmt::format("a collective of {} ranks failed in {}: {}", ranks.world_size(),
                                  activity, plain_gloo_text(failure.message));
  }
  const Reporter reporter{
      .store = ranks.shared_store(), .rank = ranks.rank(), .world_size = ranks.world_size()};
  try {
    const auto reported =
        call_within<Failure>(kStorePatience, [reporter, failure] { return reporter(failure); });
    if (reported) return *reported;
    failure.message +=
        "\n  the process that serves the ranks' store, rank 0's or a launcher's: "
        "gave no sign of life";
  } catch (const std::exception&) {
    // The store was rank 0's and went with it: what this rank knows itself has to do.
  }
  return failure;
}

}  // namespace phalanx
