// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/data_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::filesystem::path& path) {
  try {
    find_data_files("data.path", path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(FindTextFiles, TakesAFile) {
  const TextFolder folder;
  const auto file = folder.write("a.txt", "x");
  EXPECT_THAT(find_data_files("data.path", file), ElementsAre(file));
}

TEST(FindTextFiles, TakesAFolderWithAllBelowItSortedWithoutHiddenFiles) {
  const TextFolder folder;
  const auto b = folder.write("b.txt", "x");
  const auto nested = folder.write("a/z.txt", "x");
  const auto upper = folder.write("Z.txt", "x");
  folder.write(".hidden", "x");
  folder.write(".git/config", "x");
  EXPECT_THAT(find_data_files("data.path", folder.path()), ElementsAre(upper, nested, b));
}

TEST(FindTextFiles, TakesAPatternOfFilesAndFolders) {
  const TextFolder folder;
  const auto one = folder.write("part1.txt", "x");
  const auto two = folder.write("part2/deep.txt", "x");
  folder.write("other.txt", "x");
  EXPECT_THAT(find_data_files("data.path", folder.path() / "part*"), ElementsAre(one, two));
}

TEST(FindTextFiles, TakesANameThatLooksLikeAPattern) {
  const TextFolder folder;
  const auto file = folder.write("a[1].txt", "x");
  EXPECT_THAT(find_data_files("data.path", file), ElementsAre(file));
}

TEST(FindTextFiles, CountsALinkedFileOnceAndSkipsDeadLinks) {
  const TextFolder folder;
  const auto file = folder.write("b.txt", "x");
  std::filesystem::create_symlink("b.txt", folder.path() / "a.txt");
  std::filesystem::create_hard_link(file, folder.path() / "c.txt");
  std::filesystem::create_symlink("nowhere", folder.path() / "d.txt");
  EXPECT_THAT(find_data_files("data.path", folder.path()), ElementsAre(folder.path() / "a.txt"));
}

TEST(FindTextFiles, SaysWhatIsMissing) {
  const TextFolder folder;
  EXPECT_THAT(error_of(folder.path() / "none.txt"),
              testing::AllOf(HasSubstr("data.path: there is no file"), HasSubstr("none.txt")));
  EXPECT_THAT(error_of(folder.path()), HasSubstr("has no files in it"));
  EXPECT_THAT(error_of(folder.path() / "*.txt"), HasSubstr("matches no file"));
  EXPECT_THAT(error_of("/dev/null"), HasSubstr("neither a file nor a folder"));
  EXPECT_THAT(error_of("none.txt"), HasSubstr(std::filesystem::current_path().string()));
}

}  // namespace
}  // namespace phalanx
