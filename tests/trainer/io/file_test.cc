// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/trainer/io/file_size_limit.h"
#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// The message of the IoError that `action` throws.
template <class Action>
std::string io_error(Action action) {
  try {
    action();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no IoError";
}

TEST(File, WritesAndReadsBack) {
  const TemporaryFolder folder;
  File(folder / "a", O_WRONLY | O_CREAT).write("0123456789");
  std::string part(4, '\0');
  const File file(folder / "a", O_RDONLY);
  file.read(std::as_writable_bytes(std::span(part)), 3);
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(file.size(), 10U);
}

TEST(File, WhatHasBegunToBeWrittenIsReadBack) {
  const TemporaryFolder folder;
  std::string text(size_t{3} << 20, 'a');
  File file(folder / "a", O_RDWR | O_CREAT);
  file.allocate(text.size());
  file.write_at(std::as_bytes(std::span(text)), 0);
  file.start_sync(0, text.size());
  text[5000] = 'b';
  file.write_at(std::as_bytes(std::span(text)).subspan(4096, 8192), 4096);
  file.start_sync(4096, 8192);
  file.finish_sync(0, text.size());
  file.sync();
  EXPECT_EQ(read_text(folder / "a"), text);
}

TEST(File, AReadBeyondTheEndIsAnErrorThatSaysWhere) {
  const TemporaryFolder folder;
  spill(folder / "a", "0123456789");
  std::array<std::byte, 8> bytes{};
  const File file(folder / "a", O_RDONLY);
  EXPECT_THAT([&] { file.read(bytes, 6); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("ends at byte 10, 4 bytes")));
}

TEST(File, ErrorsNameOperationPathReasonAndRemedy) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      io_error([&] { File(folder / "none/a", O_WRONLY | O_CREAT); }),
      AllOf(HasSubstr("cannot create"), HasSubstr("none/a"), HasSubstr("No such file or directory"),
            HasSubstr("check that the path exists")));
  EXPECT_THAT(io_error([] { File("/dev/full", O_WRONLY).write("x"); }),
              AllOf(HasSubstr("cannot write '/dev/full'"), HasSubstr("No space left on device"),
                    HasSubstr("free some space")));
}

TEST(File, AFailedAppendLeavesNothing) {
  const TemporaryFolder folder;
  File file(folder / "rows", O_WRONLY | O_CREAT | O_APPEND);
  file.append("first\n");
  {
    const FileSizeLimit limit(10);
    EXPECT_THAT(io_error([&] { file.append("second row\n"); }), HasSubstr("ulimit -f"));
  }
  EXPECT_EQ(slurp(folder / "rows"), "first\n");
  file.append("third\n");
  EXPECT_EQ(slurp(folder / "rows"), "first\nthird\n");
}

TEST(File, ALockHasOneHolderUntilItCloses) {
  const TemporaryFolder folder;
  File second(folder.path(), O_RDONLY | O_DIRECTORY);
  {
    File first(folder.path(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(first.try_lock());
    EXPECT_FALSE(second.try_lock());
  }
  EXPECT_TRUE(second.try_lock());
}

TEST(Files, FoldersAreCreatedWithTheirParents) {
  const TemporaryFolder folder;
  create_folders(folder / "a/b/c/");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  create_folders(folder / "a/b");
  spill(folder / "file", "");
  EXPECT_THAT(io_error([&] { create_folders(folder / "file/x"); }), HasSubstr("Not a directory"));
}

TEST(Files, ReadTextTakesRegularFilesUpToALimit) {
  const TemporaryFolder folder;
  spill(folder / "a", "text");
  EXPECT_EQ(read_text(folder / "a"), "text");
  EXPECT_THROW(read_text(folder / "a", 3), std::runtime_error);
  EXPECT_THROW(read_text("/dev/zero"), std::runtime_error);
  EXPECT_THROW(read_text(folder.path()), std::runtime_error);
}

TEST(Files, ReplaceFileReplacesAndLeavesNothingElse) {
  const TemporaryFolder folder;
  replace_file(folder / "latest", "one\n");
  replace_file(folder / "latest", "two\n");
  EXPECT_EQ(slurp(folder / "latest"), "two\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, AFailedReplaceLeavesTheOldOne) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "latest/in_the_way");
  EXPECT_THAT(io_error([&] { replace_file(folder / "latest", "x"); }), HasSubstr("rename"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace phalanx
