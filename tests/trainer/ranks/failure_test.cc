// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/failure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/ranks/failures/communication_error.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

// What rank 1, which finds rank 0 gone, says of the run's end.
void expect_told(const std::string& by_rank_0, const std::string& to_rank_1) {
  const auto outcome = in_ranks(2, [&](World& world) {
    const Ranks& ranks = world.ranks();
    if (ranks.is_first()) {
      require(report_failure(ranks, std::runtime_error(by_rank_0), by_rank_0).is_first, "first");
      ranks.store().set("reported", "");
      return;
    }
    require(ranks.store().get("reported", std::chrono::seconds(20)).has_value(), "reported");
    const Failure failure =
        report_failure(ranks, CommunicationError("connection closed"), "connection closed");
    require(!failure.is_first && failure.caused_by_peer, "caused by another");
    require(failure.message == to_rank_1, failure.message);
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

TEST(Failure, NamesItsRankOnce) {
  expect_told("no data", "rank 0: no data");
  expect_told("rank 0 found no store", "rank 0 found no store");
}

}  // namespace
}  // namespace phalanx
