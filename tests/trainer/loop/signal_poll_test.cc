// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/signal_poll.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/stop_signal.h"
#include "trainer/loop/save_signal.h"
#include "trainer/loop/step_exchange.h"

namespace phalanx {
namespace {

using Body = std::function<void(const Ranks& ranks, StepExchange& exchange, SignalPoll& poll)>;

// What happens in two processes that take signals as a run does.
std::string in_two(const Body& body) {
  return in_ranks(2,
                  [&](World& world) {
                    StopSignal::install();
                    SaveSignal::install();
                    StepExchange exchange;
                    const Ranks ranks = world.ranks();
                    SignalPoll poll(ranks, exchange.signals());
                    body(ranks, exchange, poll);
                  })
      .message;
}

TEST(SignalPoll, BeforeTheFirstMicroBatchBothKnowWhatCameToOne) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange, SignalPoll& poll) {
              if (!ranks.is_first()) std::raise(SIGTERM);
              poll.look();
              require(exchange.stops(ranks), "both stop");
              require(StopSignal::received() == SIGTERM, "both know by what");
            }),
            "");
}

TEST(SignalPoll, ShortMicroBatchesExchangeSeldomAndAllRanksAtTheSameOnes) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange, SignalPoll& poll) {
              int64_t looks = 0;
              while (looks < 100) {  // Much shorter than the pause between two exchanges.
                poll.look();
                ++looks;
              }
              if (ranks.is_first()) std::raise(SIGINT);
              int64_t until_both_know = 0;
              while (!exchange.stops(ranks) && until_both_know < 1'000'000) {
                poll.look();
                ++until_both_know;
              }
              require(exchange.stops(ranks), "both stop in the end");
              require(until_both_know > 1, "not each look is an exchange");
              const auto all = ranks.all_gather(std::to_string(until_both_know));
              require(all[0] == all[1], "at the same micro-batch");
            }),
            "");
}

TEST(SignalPoll, LongMicroBatchesExchangeEachTime) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange, SignalPoll& poll) {
              const auto compute = [] {  // Longer than the pause.
                const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
                while (std::chrono::steady_clock::now() < end) continue;
              };
              for (int batch = 0; batch < 3; ++batch) {
                poll.look();
                compute();
              }
              if (ranks.is_first()) std::raise(SIGTERM);
              poll.look();
              require(exchange.stops(ranks), "within a micro-batch");
            }),
            "");
}

TEST(SignalPoll, ARequestThatItAnswersIsNotAnsweredAgainByWhatWasUnderWay) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange, SignalPoll& poll) {
              // Sent to both: one has it before the next step's exchange, the other one after.
              if (ranks.is_first()) std::raise(SIGUSR1);
              exchange.start(ranks, {});
              if (!ranks.is_first()) std::raise(SIGUSR1);
              poll.look();
              require(exchange.take_save_request(), "both save within the validation");
              exchange.finish();
              require(!exchange.take_save_request(), "and not once more after the next step");
            }),
            "");
}

TEST(SignalPoll, ARequestThatCameBeforeItIsAnsweredWhereTheExchangeEnds) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange, SignalPoll& poll) {
              if (ranks.is_first()) std::raise(SIGUSR1);
              exchange.start(ranks, {});
              poll.look();
              require(!exchange.take_save_request(), "it is under way");
              exchange.finish();
              require(exchange.take_save_request(), "both save");
            }),
            "");
}

TEST(SignalPoll, AloneASignalCountsAtOnce) {
  StopSignal::install();
  SaveSignal::install();
  const Ranks alone;
  SignalAgreement signals;
  SignalPoll poll(alone, signals);
  std::raise(SIGUSR1);
  poll.look();
  EXPECT_TRUE(signals.take_save_request());
  poll.look();
  EXPECT_FALSE(signals.take_save_request());
  EXPECT_FALSE(signals.stops(alone));
  std::raise(SIGTERM);
  EXPECT_TRUE(signals.stops(alone));
  StopSignal::install();
}

}  // namespace
}  // namespace phalanx
