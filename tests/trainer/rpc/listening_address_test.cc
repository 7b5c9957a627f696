// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/listening_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "trainer/base/user_error.h"

namespace phalanx::rpc {
namespace {

using ::testing::HasSubstr;

class ListeningAddress : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("GLOO_SOCKET_IFNAME"); }

  static void set_interface(const char* name) { setenv("GLOO_SOCKET_IFNAME", name, 1); }
};

TEST_F(ListeningAddress, IsThatOfTheProcessGroup) {
  set_interface("no_such_interface");
  EXPECT_EQ(listening_address("10.1.2.3"), "10.1.2.3");
}

TEST_F(ListeningAddress, IsThatOfTheFirstInterface) {
  set_interface("lo");
  EXPECT_EQ(listening_address(""), "127.0.0.1");
  set_interface("lo,no_such_interface");
  EXPECT_EQ(listening_address(""), "127.0.0.1");
}

TEST_F(ListeningAddress, IsLoopbackWithoutAnInterface) {
  unsetenv("GLOO_SOCKET_IFNAME");
  EXPECT_EQ(listening_address(""), "127.0.0.1");
}

TEST_F(ListeningAddress, RefusesAnInterfaceThatIsNotThere) {
  set_interface("no_such_interface,lo");
  try {
    listening_address("");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the network interface 'no_such_interface' is not there"));
  }
}

}  // namespace
}  // namespace phalanx::rpc
