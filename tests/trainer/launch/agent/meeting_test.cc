// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

// Its process says why, and ends, before the agent looks.
TEST(Meeting, AnAgentThatSpeaksFirstHearsWhyItIsRefused) {
  AgentSettings settings{.min_nodes = 2,
                         .max_nodes = 2,
                         .node_rank = 1,
                         .host = "no-such-host.invalid",
                         .port = 29500,
                         .server = AgentSettings::Server::elsewhere};
  Meeting meeting(settings, launched_program({"true"}, /*is_elastic=*/false));
  pollfd ended{.fd = meeting.descriptor(), .events = 0, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, 60'000), 1);
  EXPECT_THAT([&] { meeting.tell({}); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("no-such-host.invalid")));
}

}  // namespace
}  // namespace phalanx
