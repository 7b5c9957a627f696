// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/file_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phalanx {
namespace {

std::vector<std::string> names_of(const FileList& files) {
  std::vector<std::string> names;
  for (const std::filesystem::path file : files) names.push_back(file.string());
  return names;
}

TEST(FileList, HasPathsByNumber) {
  FileList files{"b/1", "a"};
  files.add("");
  files.add(FileList{"c"});
  EXPECT_EQ(files.size(), 4);
  EXPECT_EQ(files.name(0), "b/1");
  EXPECT_EQ(files[1], "a");
  EXPECT_THAT(names_of(files), testing::ElementsAre("b/1", "a", "", "c"));
}

TEST(FileList, SortsByBytes) {
  FileList files{"a/b", "a.txt", "Z", "a", "\xC3\xBC"};
  files.sort();
  EXPECT_THAT(names_of(files), testing::ElementsAre("Z", "a", "a.txt", "a/b", "\xC3\xBC"));
}

TEST(FileList, KeepsSome) {
  FileList files{"a", "bb", "ccc"};
  files.keep_if({true, false, true});
  EXPECT_THAT(names_of(files), testing::ElementsAre("a", "ccc"));
  files.keep_if({false, false});
  EXPECT_TRUE(files.empty());
}

TEST(FileList, ACopyDoesNotSeeWhatIsAddedLater) {
  FileList files{"a"};
  const FileList copy = files;
  files.add("b");
  EXPECT_EQ(copy.size(), 1);
  EXPECT_EQ(files.size(), 2);
}

}  // namespace
}  // namespace phalanx
