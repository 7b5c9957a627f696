// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/step_exchange.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/base/stop_signal.h"
#include "trainer/loop/save_signal.h"

namespace phalanx {
namespace {

using Body = std::function<void(const Ranks& ranks, StepExchange& exchange)>;

StepExchange::Counts sums(const Ranks& ranks, StepExchange& exchange,
                          StepExchange::Counts mine = {}) {
  exchange.start(ranks, mine);
  return exchange.finish();
}

// What happens in two processes that take signals as a run does.
std::string in_two(const Body& body) {
  return in_ranks(2,
                  [&](World& world) {
                    StopSignal::install();
                    SaveSignal::install();
                    StepExchange exchange;
                    body(world.ranks(), exchange);
                  })
      .message;
}

TEST(StepExchange, CountsAreSummed) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange) {
              const StepExchange::Counts all =
                  sums(ranks, exchange,
                       {.samples = 3 + ranks.rank(), .tokens = 10, .broken = ranks.rank()});
              require(all.samples == 7 && all.tokens == 20, "sums over both");
              require(all.broken == 1 && all.failures == 0, "also of what is wrong");
              require(!exchange.stops(ranks) && !exchange.take_save_request(), "no signal came");
            }),
            "");
}

TEST(StepExchange, ASignalToOneStopsBothInTheSameStep) {
  for (const int signal : StopSignal::kSignals) {
    EXPECT_EQ(in_two([signal](const Ranks& ranks, StepExchange& exchange) {
                if (ranks.is_first()) std::raise(signal);
                require(!exchange.stops(ranks), "nobody stops before all know");
                sums(ranks, exchange);
                require(exchange.stops(ranks), "both stop");
                require(StopSignal::received() == signal, "both know by what");
                // The one that was sent to both of them comes to this one only now.
                if (!ranks.is_first()) std::raise(signal);
              }),
              "")
        << signal;
  }
}

TEST(StepExchange, ASignalThatComesWhileItTravelsIsOfTheNextOne) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange) {
              exchange.start(ranks, {});
              if (ranks.is_first()) std::raise(SIGTERM);
              exchange.finish();
              require(!exchange.stops(ranks), "the other one cannot know of it");
              sums(ranks, exchange);
              require(exchange.stops(ranks), "now both do");
            }),
            "");
}

TEST(StepExchange, ARequestToSaveIsEverybodysOnce) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange) {
              if (!ranks.is_first()) std::raise(SIGUSR1);
              sums(ranks, exchange);
              require(exchange.take_save_request(), "both save");
              // It was sent to both, and this one gets it a step later.
              if (ranks.is_first()) std::raise(SIGUSR1);
              sums(ranks, exchange);
              require(!exchange.take_save_request(), "that was the same one");
              require(!exchange.stops(ranks), "they go on");
            }),
            "");
}

TEST(StepExchange, ASecondRequestIsNotTakenForTheFirst) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange) {
              for (int request = 0; request < 3; ++request) {  // All within a moment.
                std::raise(SIGUSR1);
                sums(ranks, exchange);
                require(exchange.take_save_request(), "each that comes to both is answered");
              }
              for (int request = 0; request < 3; ++request) {
                if (ranks.is_first()) std::raise(SIGUSR1);
                sums(ranks, exchange);
                require(exchange.take_save_request(), "so is each that comes to one");
              }
              if (!ranks.is_first()) std::raise(SIGUSR1);
              sums(ranks, exchange);
              require(!exchange.take_save_request(), "what comes late is the last one");
              if (!ranks.is_first()) std::raise(SIGUSR1);
              sums(ranks, exchange);
              require(exchange.take_save_request(), "and only once");
            }),
            "");
}

// As one to a launcher, and two seconds later one to that of another host, while a step takes long.
TEST(StepExchange, ARequestToAnotherRankTwoSecondsLaterIsItsOwn) {
  EXPECT_EQ(in_two([](const Ranks& ranks, StepExchange& exchange) {
              if (ranks.is_first()) std::raise(SIGUSR1);
              std::this_thread::sleep_for(std::chrono::seconds(1));
              sums(ranks, exchange);
              require(exchange.take_save_request(), "the first");
              std::this_thread::sleep_for(std::chrono::seconds(1));
              if (!ranks.is_first()) std::raise(SIGUSR1);
              sums(ranks, exchange);
              require(exchange.take_save_request(), "the second");
            }),
            "");
}

TEST(StepExchange, AloneASignalCountsAtOnce) {
  StopSignal::install();
  SaveSignal::install();
  StepExchange exchange;
  std::raise(SIGUSR1);
  EXPECT_EQ(sums(Ranks(), exchange, {.samples = 3, .tokens = 5}).tokens, 5);
  EXPECT_TRUE(exchange.take_save_request());
  EXPECT_FALSE(exchange.take_save_request());
  std::raise(SIGUSR2);
  EXPECT_TRUE(exchange.stops(Ranks()));
  StopSignal::install();
}

}  // namespace
}  // namespace phalanx
