// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/abrupt_end.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/host/host.h"
#include "trainer/launch/rank_processes.h"

namespace phalanx {
namespace {

constexpr std::chrono::milliseconds kShort{50};

// The last words of rank 1, which tells an exception "what" as if a peer had caused it.
LastWords words_of_rank_1() {
  auto activity = std::make_shared<SharedText>();
  activity->set("step 3, backward");
  return {.prefix = "error: rank 1: ",
          .activity = std::move(activity),
          .outcome_of =
              [](const std::exception& error) {
                return RankOutcome{.exit_code = 1, .message = error.what(), .caused_by_peer = true};
              },
          .tell =
              [](const RankOutcome& outcome) {
                std::fprintf(stderr, "told: %s\n", outcome.message.c_str());
              }};
}

void give_up() {
  std::thread([] { std::abort(); }).join();
}
void crash() {
  std::thread([] { ::raise(SIGSEGV); }).join();
}
void throw_in_thread() {
  std::thread([] { throw std::runtime_error("a collective has timed out"); }).join();
}
void throw_a_number() {
  std::thread([] { throw 7; }).join();
}

// Every call has a frame of its own, which the one before it waits for.
[[gnu::noinline]] int64_t call_without_end(int64_t depth) {
  volatile char frame[4096];
  frame[depth % 4096] = 1;
  return depth < 0 ? 0 : call_without_end(depth + 1) + frame[depth % 4096];
}
void fill_the_stack() {
  rlimit limit{};
  ::getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8 << 20);
  ::setrlimit(RLIMIT_STACK, &limit);
  call_without_end(0);
}

// The outcome of two ranks, of which the first waits to be ended.
RankOutcome outcome_where_rank_1(void (*end)(), const LastWords& words = words_of_rank_1()) {
  return RankProcesses(2, kShort).run([&](const Environment& environment) {
    if (environment.rank == 0) {
      for (;;) ::pause();
    }
    const AbruptEnd told(words);
    end();
    return RankOutcome{};
  });
}

TEST(AbruptEnd, ByAbortTellsWhatTheRankWasDoing) {
  EXPECT_EQ(outcome_where_rank_1(give_up),
            (RankOutcome{.exit_code = 1,
                         .message = "rank 1: step 3, backward: was killed by signal 6 (Aborted): "
                                    "the program gave up; what it printed before says why",
                         .rank = 1,
                         .signal = SIGABRT}));
}

TEST(AbruptEnd, ByACrashTellsWhatTheRankWasDoing) {
  EXPECT_EQ(outcome_where_rank_1(crash),
            (RankOutcome{
                .exit_code = 1,
                .message = "rank 1: step 3, backward: was killed by signal 11 (Segmentation fault)",
                .rank = 1,
                .signal = SIGSEGV}));
}

TEST(AbruptEnd, ByAFullStackTellsWhatTheRankWasDoing) {
  EXPECT_EQ(outcome_where_rank_1(fill_the_stack).message,
            "rank 1: step 3, backward: was killed by signal 11 (Segmentation fault)");
}

TEST(AbruptEnd, ByAnExceptionTellsIt) {
  EXPECT_EQ(outcome_where_rank_1(throw_in_thread),
            (RankOutcome{.exit_code = 1,
                         .message = "rank 1: a collective has timed out",
                         .caused_by_peer = true,
                         .rank = 1}));
  EXPECT_EQ(outcome_where_rank_1(throw_a_number).message,
            "rank 1: step 3, backward: no thread caught an exception that is no std::exception");
  EXPECT_EQ(outcome_where_rank_1([] { std::terminate(); }).message,
            "rank 1: step 3, backward: std::terminate was called");
}

TEST(AbruptEnd, ByAnExceptionThatCannotBeExplainedTellsItPlainly) {
  LastWords words = words_of_rank_1();
  words.outcome_of = [](const std::exception&) -> RankOutcome {
    throw std::runtime_error("no answer");
  };
  EXPECT_EQ(outcome_where_rank_1(throw_in_thread, words).message,
            "rank 1: step 3, backward: no thread caught this exception: "
            "a collective has timed out");
}

TEST(AbruptEnd, ByManyThreadsAtOnceIsToldOnceAndWhole) {
  for (int round = 0; round < 20; ++round) {
    const RankOutcome outcome = outcome_where_rank_1([] {
      std::latch together(8);
      std::vector<std::jthread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&together, i] {
          together.arrive_and_wait();
          if (i % 2 == 0) std::abort();
          throw std::runtime_error(std::string(10'000, 'x'));
        });
      }
    });
    if (outcome.signal == SIGABRT) {
      EXPECT_TRUE(outcome.message.ends_with("what it printed before says why")) << outcome.message;
    } else {
      EXPECT_EQ(outcome.message, "rank 1: " + std::string(10'000, 'x'));
    }
  }
}

// The rank's own thread has come to its end meanwhile, and other words lie where these were.
TEST(AbruptEnd, IsExplainedInTheWordsThatItBeganWith) {
  const RankOutcome outcome = RankProcesses(1, kShort).run([](const Environment&) {
    std::latch is_asked(1);
    std::latch is_over(1);
    LastWords words = words_of_rank_1();
    words.outcome_of = [&](const std::exception&) -> RankOutcome {
      is_asked.count_down();
      is_over.wait();
      throw std::runtime_error("no answer");
    };
    std::optional<AbruptEnd> told(std::in_place, std::move(words));
    std::thread failing([] { throw std::runtime_error("a collective has timed out"); });
    is_asked.wait();
    told.reset();
    auto other_activity = std::make_shared<SharedText>();
    other_activity->set("step 4, forward");
    told.emplace(LastWords{.prefix = "", .activity = other_activity, .outcome_of = {}, .tell = {}});
    is_over.count_down();
    failing.join();
    return RankOutcome{};
  });
  EXPECT_EQ(outcome.message,
            "rank 0: step 3, backward: no thread caught this exception: "
            "a collective has timed out");
}

TEST(AbruptEnd, OnceItIsOverAnEndIsNotTold) {
  const auto end = [] {
    { const AbruptEnd told(words_of_rank_1()); }
    give_up();
  };
  EXPECT_EQ(RankProcesses(1, kShort)
                .run([&](const Environment&) {
                  end();
                  return RankOutcome{};
                })
                .message,
            "rank 0 was killed by signal 6 (Aborted) on " + host_name());
}

TEST(AbruptEndDeathTest, WithoutALauncherIsToldOnStandardError) {
  EXPECT_EXIT(
      {
        const AbruptEnd told(words_of_rank_1());
        give_up();
      },
      testing::KilledBySignal(SIGABRT), "error: rank 1: step 3, backward: was killed by signal 6");
  EXPECT_EXIT(
      {
        const AbruptEnd told(words_of_rank_1());
        throw_in_thread();
      },
      testing::KilledBySignal(SIGABRT), "told: a collective has timed out");
}

}  // namespace
}  // namespace phalanx
