// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

class HostIdentity : public testing::Test {
 protected:
  /// The identity of a host of this one's name whose kernel tells such a boot.
  std::string with_boot(const std::string& boot_id) const {
    const auto file = root_ / "proc/sys/kernel/random/boot_id";
    std::filesystem::create_directories(file.parent_path());
    spill(file, boot_id + "\n");
    return host_identity(root_.path());
  }

  TemporaryFolder root_;
};

TEST_F(HostIdentity, IsTheSameEachTime) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_EQ(with_boot("one"), with_boot("one"));
}

TEST_F(HostIdentity, TellsKernelsOfOneNameApart) { EXPECT_NE(with_boot("one"), with_boot("two")); }

TEST_F(HostIdentity, HoldsTheName) {
  EXPECT_THAT(with_boot("one"), testing::StartsWith(host_name()));
  EXPECT_EQ(host_identity(root_ / "empty"), host_name()) << "where the kernel tells no boot";
}

TEST(HostName, IsNeverEmpty) { EXPECT_FALSE(host_name().empty()); }

}  // namespace
}  // namespace phalanx
