// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/program.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

TEST(Program, IsNamedAsItWasCalled) {
  const std::string name = program_name();
  EXPECT_NE(name.find("base_test"), std::string::npos) << name;
}

TEST(Program, HasAUsualNameWhereTheSystemDoesNotSay) {
  const TemporaryFolder folder;
  EXPECT_EQ(program_name(folder.path()), "trainer");
  std::filesystem::create_directories(folder / "proc/self");
  std::ofstream(folder / "proc/self/cmdline") << std::string_view("./my trainer\0a.yaml\0", 20);
  EXPECT_EQ(program_name(folder.path()), "./my trainer");
}

}  // namespace
}  // namespace phalanx
