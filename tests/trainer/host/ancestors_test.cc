// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/ancestors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Not;
using testing::IsEmpty;

void add_process(const fs::path& root, const std::string& number, const std::string& name,
                 const std::string& parent, const std::string& command) {
  const fs::path folder = root / "proc" / number;
  fs::create_directories(folder);
  std::ofstream(folder / "stat") << number << " (" << name << ") S " << parent << " 1 1 0\n";
  std::ofstream(folder / "cmdline", std::ios::binary) << command;
}

TEST(Ancestors, AreReadUpToTheFirstProcess) {
  const TemporaryFolder folder;
  using namespace std::string_literals;
  add_process(folder.path(), "self", "trainer", "12", "trainer\0a b\0"s);
  add_process(folder.path(), "12", "a) S 99 (", "7", "mpirun\0-n\0004\0trainer\0"s);
  add_process(folder.path(), "7", "bash", "0", "bash\0\0-c\0"s);
  EXPECT_THAT(commands_of_ancestors(folder.path()),
              ElementsAre(ElementsAre("mpirun", "-n", "4", "trainer"),
                          ElementsAre("bash", "", "-c")));
}

TEST(Ancestors, EndWhereTheSystemShowsNone) {
  const TemporaryFolder folder;
  EXPECT_THAT(commands_of_ancestors(folder.path()), IsEmpty());
  add_process(folder.path(), "self", "trainer", "12", "trainer");
  EXPECT_THAT(commands_of_ancestors(folder.path()), IsEmpty());
}

TEST(Ancestors, OfThisProcessAreThere) { EXPECT_THAT(commands_of_ancestors(), Not(IsEmpty())); }

}  // namespace
}  // namespace phalanx
