// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_messages.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(AgentMessages, AStatusSurvivesTheStore) {
  const AgentStatus status{.node = "host \"a\"",
                           .version = "1.2",
                           .ranks = 4,
                           .node_rank = 3,
                           .min_nodes = 2,
                           .max_nodes = 5,
                           .beat = 77,
                           .state = AgentStatus::State::failed,
                           .round = 2,
                           .end = {.outcome = {.exit_code = 137,
                                               .message = "two\nlines",
                                               .caused_by_peer = true,
                                               .rank = 5,
                                               .signal = 9},
                                   .time = 1'700'000'000'123,
                                   .may_restart = false},
                           .is_told = true,
                           .has_stepped = true,
                           .samples_a_step = 64,
                           .answered = JoinAsk{.ranks_of_nodes = {4, 2}, .samples_a_step = 8},
                           .unfit = "why not"};
  EXPECT_EQ(status_in(to_text(status)), status);
  EXPECT_EQ(status_in(to_text(AgentStatus{})), AgentStatus{});
}

TEST(AgentMessages, AnOrderSurvivesTheStore) {
  const Order order{.kind = Order::Kind::gather,
                    .round = 3,
                    .members = {{0, 2}, {4, 8}},
                    .outcome = {.exit_code = 1, .message = "why", .reason = "node a joins"},
                    .reason = "node a joins",
                    .lacking = 2,
                    .delay = 4,
                    .refused = {{6, "because"}},
                    .asked = {{7, {.ranks_of_nodes = {1, 2}, .samples_a_step = 16}}},
                    .news = {"node b is refused"},
                    .news_count = 3};
  EXPECT_EQ(order_in(to_text(order)), order);
  EXPECT_EQ(order_in(to_text(Order{})), Order{});
}

TEST(AgentMessages, WhatRanksPrintNeedNotBeUtf8) {
  AgentStatus status;
  status.end.outcome.message = "\xff\xfe!";
  EXPECT_EQ(status_in(to_text(status)).end.outcome.message, "\uFFFD\uFFFD!");
}

TEST(AgentMessages, OtherTextsAreRefused) {
  EXPECT_THROW(status_in("{}"), std::exception);
  EXPECT_THROW(order_in("run"), std::exception);
}

}  // namespace
}  // namespace phalanx
