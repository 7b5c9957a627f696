// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/local_address.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(LocalAddress, OfTheWayToLoopbackIsLoopback) {
  EXPECT_EQ(local_address_towards("127.0.0.1", 80), "127.0.0.1");
  EXPECT_TRUE(is_loopback(local_address_towards("127.0.1.1", 80)));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
}

TEST(LocalAddress, IsEmptyForAnUnknownName) {
  EXPECT_EQ(local_address_towards("no-such-host.invalid", 80), "");
}

}  // namespace
}  // namespace phalanx
