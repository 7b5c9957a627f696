// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/packets.h"

#include <gtest/gtest.h>

#include <string>

namespace phalanx {
namespace {

TEST(Packets, ComeInOrderWithTheirBounds) {
  const PacketPair pair = make_packet_pair();
  std::string packet;
  EXPECT_EQ(read_packet(pair.first, packet), ReadResult::nothing_yet);
  EXPECT_TRUE(write_packet(pair.second, "one"));
  EXPECT_TRUE(write_packet(pair.second, std::string(100'000, 'x')));
  EXPECT_EQ(read_packet(pair.first, packet), ReadResult::some);
  EXPECT_EQ(packet, "one");
  EXPECT_EQ(read_packet(pair.first, packet), ReadResult::some);
  EXPECT_EQ(packet.size(), 100'000U);
}

// The kernel then reports ECONNRESET before what the peer has written.
TEST(Packets, TheLastWordOfAPeerThatDidNotReadIsHeard) {
  PacketPair pair = make_packet_pair();
  EXPECT_TRUE(write_packet(pair.first, "unread"));
  EXPECT_TRUE(write_packet(pair.second, "why"));
  pair.second.close();
  std::string packet;
  EXPECT_EQ(read_packet(pair.first, packet), ReadResult::some);
  EXPECT_EQ(packet, "why");
  EXPECT_EQ(read_packet(pair.first, packet), ReadResult::end);
  EXPECT_FALSE(write_packet(pair.first, "anybody?"));
}

}  // namespace
}  // namespace phalanx
