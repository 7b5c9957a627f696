// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/failure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/host/host.h"
#include "trainer/ranks/failures/communication_error.h"
#include "trainer/ranks/failures/unlike_passes.h"
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

const std::string kTimedOut = "all-reduce of 3 ranks failed in step 3, backward: Timed out";

bool is_stopped(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  const size_t end_of_name = stat.rfind(") ");
  return end_of_name != std::string::npos && stat[end_of_name + 2] == 'T';
}

void wait_until_stopped(const std::string& pid) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!is_stopped(pid)) {
    require(std::chrono::steady_clock::now() < end, "process " + pid + " stops");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// All ranks meet. Then one stops, and the others go on once it has.
void stop(const Ranks& ranks, int64_t stopped) {
  if (ranks.rank() == stopped) ranks.store().set("stopped", std::to_string(::getpid()));
  const auto pid = ranks.store().get("stopped", std::chrono::seconds(60));
  require(pid.has_value(), "the process to stop");
  ranks.barrier();
  if (ranks.rank() == stopped) {
    ::raise(SIGSTOP);
  } else {
    wait_until_stopped(*pid);
  }
}

void hang(const Ranks& ranks, int64_t hung) {
  ranks.barrier();
  if (ranks.rank() == hung) std::this_thread::sleep_for(std::chrono::minutes(10));
}

// The outcome where rank 1 of three does not come out of `leave` while the others time out. Both
// name rank 1 in the same words.
RankOutcome where_rank_1(const std::function<void(const Ranks&, int64_t)>& leave,
                         const std::string& words) {
  return in_ranks(3, [&](World& world) {
    const Ranks& ranks = world.ranks();
    ranks.set_activity(ranks.rank() == 1 ? "step 3, forward" : "step 3, backward");
    leave(ranks, 1);
    const Failure failure = report_failure(ranks, CommunicationError(kTimedOut), kTimedOut);
    require(failure.cause == 1, "the cause: " + failure.message);
    require(failure.message.starts_with(words), failure.message);
    throw CommunicationError(failure.message);
  });
}

TEST(Failure, NamesTheRankThatGivesNoSignOfLifeFirst) {
  const std::string words = "rank 1: gave no sign of life on " + host_name() + "; rank ";
  const RankOutcome outcome = where_rank_1(stop, words);
  EXPECT_TRUE(outcome.message.starts_with(words)) << outcome.message;
  EXPECT_TRUE(outcome.caused_by_peer);
}

TEST(Failure, NamesTheRankThatAnswersButHangs) {
  const std::string words = "rank 1: step 3, forward: its process on " + host_name() + " answers";
  const RankOutcome outcome = where_rank_1(hang, words);
  EXPECT_TRUE(outcome.message.starts_with(words)) << outcome.message;
}

TEST(Failure, SaysThatRanksMayRunOtherPassesOfATasksOwnStep) {
  const RankOutcome outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    const std::string activity = ranks.is_first() ? activity_before("skips") : "backward";
    ranks.set_activity("step 3, " + activity);
    ranks.barrier();
    const std::string closed = "all-reduce of 2 ranks failed in step 3: connection closed";
    const Failure failure = report_failure(ranks, CommunicationError(closed), closed);
    require(failure.message.find("the ranks run other passes in step 3") != std::string::npos,
            failure.message);
    throw CommunicationError(failure.message);
  });
  EXPECT_NE(outcome.message.find("the ranks run other passes in step 3"), std::string::npos)
      << outcome.message;
}

// It serves the store, which is silent as well.
TEST(Failure, NamesTheRankThatServesTheStore) {
  const std::string words = "rank 0: gave no sign of life on " + host_name();
  const RankOutcome outcome = in_ranks(2, [&](World& world) {
    stop(world.ranks(), 0);
    const Failure failure = report_failure(world.ranks(), CommunicationError(kTimedOut), kTimedOut);
    require(failure.cause == 0, "the cause");
    throw CommunicationError(failure.message);
  });
  EXPECT_TRUE(outcome.message.starts_with(words)) << outcome.message;
}

// Whoever stopped it lets it go on once the others have given up.
TEST(Failure, NamesItselfWithHostAndStepWhereItDidNotRun) {
  const RankOutcome outcome = in_ranks(
      2,
      [](World& world) {
        const Ranks& ranks = world.ranks();
        ranks.set_activity("step 3, backward");
        if (ranks.is_first()) {
          const auto pid = ranks.store().get("stopped", std::chrono::seconds(60));
          require(pid.has_value(), "the process to stop");
          ranks.barrier();
          wait_until_stopped(*pid);
          std::this_thread::sleep_for(std::chrono::seconds(4));  // the length of the pause
          ::kill(std::stoi(*pid), SIGCONT);
          require(ranks.store().get("told", std::chrono::seconds(60)).has_value(), "it is told");
          return;
        }
        ranks.store().set("stopped", std::to_string(::getpid()));
        ranks.barrier();
        ::raise(SIGSTOP);
        const Failure failure = report_failure(ranks, CommunicationError(kTimedOut), kTimedOut);
        require(std::regex_search(failure.message,
                                  std::regex("^did not run for [0-9]+ s on " + host_name() +
                                             " in step 3, backward: it was stopped by a signal")),
                failure.message);
        require(failure.message.ends_with("\n  " + kTimedOut), failure.message);
        ranks.store().set("told", "");
      },
      {.timeout = std::chrono::seconds(6)});
  EXPECT_EQ(outcome, RankOutcome{});
}

// It need not be the first that ended.
TEST(Failure, DoesNotAccuseTheRankThatClosesTheStore) {
  const RankOutcome outcome = in_ranks(2, [&](World& world) {
    const Ranks& ranks = world.ranks();
    ranks.barrier();
    if (ranks.is_first()) throw CommunicationError("ends as others do");
    bool is_closed = false;
    try {
      ranks.store().get("what nobody sets", std::chrono::seconds(60));
    } catch (const CommunicationError&) {
      is_closed = true;
    }
    require(is_closed, "the store closes");
    const Failure failure = report_failure(ranks, CommunicationError(kTimedOut), kTimedOut);
    require(!failure.cause, "a cause: " + failure.message);
    require(failure.message.starts_with(kTimedOut), failure.message);
    throw CommunicationError(failure.message);
  });
  EXPECT_TRUE(outcome.caused_by_peer) << outcome.message;
}

TEST(Failure, AccusesNobodyWhereAllRanksAreAlike) {
  const RankOutcome outcome = in_ranks(3, [&](World& world) {
    const Ranks& ranks = world.ranks();
    ranks.set_activity("step 3, backward");
    ranks.barrier();
    throw CommunicationError(
        report_failure(ranks, CommunicationError(kTimedOut), kTimedOut).message);
  });
  EXPECT_TRUE(outcome.message.find(": " + kTimedOut) < 10) << outcome.message;
}

}  // namespace
}  // namespace phalanx
