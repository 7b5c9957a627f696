// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/hostfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Host> hosts_in(const std::string& text) {
  const TemporaryFolder folder;
  spill(folder / "hosts", text);
  return read_hostfile(folder / "hosts");
}

std::string refusal(const std::string& text) {
  try {
    hosts_in(text);
  } catch (const UserError& error) {
    const std::string message = error.what();
    return message.substr(message.find("hosts:"));
  }
  return "taken";
}

TEST(Hostfile, HasAHostALine) {
  EXPECT_THAT(hosts_in("# of the rack\n\nnode-0.rack slots=4\r\n\t10.0.0.7  # the old one\n"
                       "fe80::1%eth0 slots=0x10# hexadecimal\nlast slots=4096"),
              ElementsAre(Host{"node-0.rack", 4}, Host{"10.0.0.7", {}}, Host{"fe80::1%eth0", 16},
                          Host{"last", 4096}));
}

TEST(Hostfile, ABadLineIsNamed) {
  for (const auto& [line, why] : std::vector<std::pair<std::string, std::string>>{
           {"b slots=", "'slots=': write a number of ranks from 1 to 4096"},
           {"b slots=0", "'slots=0': write a number"},
           {"b slots=-1", "'slots=-1': write a number"},
           {"b slots=4097", "'slots=4097': write a number"},
           {"b slots=4x", "'slots=4x': write a number"},
           {"b slots = 4", "'slots' is not understood: write HOST, or HOST slots=4"},
           {"b max_slots=4", "'max_slots=4' is not understood"},
           {"b 4", "'4' is not understood"},
           {"b slots=4 slots=4", "'slots=4' is one word too many"},
           {"slots=4", "'slots=4' is no host: a name or an address has"},
           {"-oProxyCommand=x", "is no host"},
           {"b;reboot", "'b;reboot' is no host"},
           {"b$(id)", "is no host"},
           {"me@b", "'me@b' is no host: name the user in ~/.ssh/config"},
           {"a slots=2", "'a' stands in line 1 already"}}) {
    const std::string message = refusal("a\n\n" + line + "\nc\n");
    EXPECT_THAT(message, HasSubstr(why));
    EXPECT_TRUE(message.starts_with("hosts:3: ")) << message;
  }
}

TEST(Hostfile, WithoutAHostIsRefused) {
  EXPECT_EQ(refusal(""), "hosts: names no host: write one a line");
  EXPECT_EQ(refusal("# node0\n \n"), "hosts: names no host: write one a line");
}

TEST(Hostfile, ThatCannotBeReadIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_hostfile(folder / "none"), UserError);
  EXPECT_THROW(read_hostfile(folder.path()), UserError);
}

}  // namespace
}  // namespace phalanx
