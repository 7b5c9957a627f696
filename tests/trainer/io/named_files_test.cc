// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/named_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

TEST(NamedFiles, AreFilesFoldersAndPatternsWithMatches) {
  const TemporaryFolder folder;
  spill(folder / "a.txt", "a");
  spill(folder / "b[1].txt", "b");
  std::filesystem::create_directory(folder / "texts");
  for (const char* name : {"a.txt", "texts", "*.txt", "b[1].txt", "[ab].txt"}) {
    EXPECT_TRUE(names_files(folder / name)) << name;
  }
  for (const char* name : {"c.txt", "*.jsonl", "texts/*", "a.txt/x", ""}) {
    EXPECT_FALSE(names_files(*name == '\0' ? std::filesystem::path() : folder / name)) << name;
  }
}

TEST(NamedFiles, AreIndexedSetsByTheirPrefix) {
  const TemporaryFolder folder;
  spill(folder / "books_text_document.idx", "i");
  spill(folder / "books_text_document.bin", "b");
  EXPECT_TRUE(names_files(folder / "books_text_document"));
  EXPECT_FALSE(names_files(folder / "books"));
}

}  // namespace
}  // namespace phalanx
