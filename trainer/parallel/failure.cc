#include "trainer/parallel/failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "trainer/parallel/gloo.h"

namespace phalanx {
namespace {

constexpr const char* kFirstFailure = "failure";
constexpr auto kPatience = std::chrono::milliseconds(1000);  // others notice within milliseconds
constexpr int64_t kMostNamed = 16;

std::string wait_key(int64_t rank) { return fmt::format("waiting/{}", rank); }

// What the other ranks were waiting for when this one gave up: the one that says nothing is the one
// to look at.
std::string words_of_others(const Ranks& ranks) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  for (int64_t rank = 0; rank < std::min(ranks.world_size(), kMostNamed); ++rank) {
    if (rank == ranks.rank()) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    const auto word =
        ranks.store().get(wait_key(rank), std::max(left, std::chrono::milliseconds(0)));
    text += fmt::format("\n  rank {}: {}", rank, word.value_or("gave no sign of life"));
  }
  return text;
}

void report_own(const Ranks& ranks, Failure& failure) {
  const std::string mine = fmt::format("rank {}: {}", ranks.rank(), failure.message);
  failure.is_first = ranks.store().set_if_absent(kFirstFailure, mine) == mine;
}

void report_consequence(const Ranks& ranks, Failure& failure) {
  ranks.store().set(wait_key(ranks.rank()), failure.message);
  if (const auto cause = ranks.store().get(kFirstFailure, kPatience / 10)) {
    failure.is_first = false;
    failure.message = *cause;
    return;
  }
  const std::string mine = fmt::format("rank {}: {}", ranks.rank(), failure.message);
  failure.is_first = ranks.store().set_if_absent(kFirstFailure, mine) == mine;
  if (failure.is_first) failure.message += words_of_others(ranks);
}

}  // namespace

bool is_communication_error(const std::exception& error) {
  return dynamic_cast<const CommunicationError*>(&error) != nullptr ||
         dynamic_cast<const c10::DistError*>(&error) != nullptr || is_gloo_io_error(error);
}

Failure report_failure(const Ranks& ranks, const std::exception& error, std::string message) {
  Failure failure{.message = std::move(message), .caused_by_peer = is_communication_error(error)};
  if (ranks.is_alone()) return failure;
  if (failure.caused_by_peer && dynamic_cast<const CommunicationError*>(&error) == nullptr) {
    failure.message = fmt::format("a collective of {} ranks failed in {}: {}", ranks.world_size(),
                                  ranks.activity(), failure.message);
  }
  try {
    failure.caused_by_peer ? report_consequence(ranks, failure) : report_own(ranks, failure);
  } catch (const std::exception&) {
    // The store was rank 0's and went with it: what this rank knows itself has to do.
  }
  return failure;
}

}  // namespace phalanx
