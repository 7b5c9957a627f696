// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/byte_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>
#include <system_error>

#include "tests/trainer/data/text_folder.h"
#include "tests/trainer/io/without_privileges.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string text_at(const ByteStream& stream, int64_t offset, size_t count) {
  std::vector<unsigned char> bytes(count);
  stream.read(offset, std::span(bytes));
  return {bytes.begin(), bytes.end()};
}

std::string error_of(const std::filesystem::path& path) {
  try {
    const ByteStream stream("data.path", {path});
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ByteStream, ReadsAcrossFilesAndEmptyOnes) {
  const TextFolder folder;
  const ByteStream stream("data.path", {folder.write("a", "abc"), folder.write("b", ""),
                                        folder.write("c", "d"), folder.write("d", "efgh")});
  ASSERT_EQ(stream.size(), 8);
  const std::string all = "abcdefgh";
  for (size_t begin = 0; begin < all.size(); ++begin) {
    for (size_t count = 0; begin + count <= all.size(); ++count) {
      EXPECT_EQ(text_at(stream, static_cast<int64_t>(begin), count), all.substr(begin, count));
    }
  }
}

TEST(ByteStream, WidensEveryByteUnsigned) {
  const TextFolder folder;
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  const ByteStream stream("data.path", {folder.write("all", all)});
  std::vector<int64_t> tokens(256);
  stream.read(0, std::span(tokens));
  for (int64_t i = 0; i < 256; ++i) EXPECT_EQ(tokens[static_cast<size_t>(i)], i);
}

TEST(ByteStream, OfNothingIsEmpty) { EXPECT_EQ(ByteStream("data.path", {}).size(), 0); }

TEST(ByteStream, SaysWhichFileCannotBeRead) {
  const TextFolder folder;
  EXPECT_THAT(error_of(folder.path()), HasSubstr("Is a directory"));
  EXPECT_THAT(error_of(folder.path() / "gone"), HasSubstr("No such file"));
  EXPECT_THAT(error_of("/dev/null"), HasSubstr("cannot read '/dev/null'"));
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of(pipe), HasSubstr("cannot read"));
}

TEST(ByteStream, SaysWhichFileIsForbidden) {
  const TextFolder folder;
  const auto file = folder.write("secret", "abc");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const WithoutPrivileges plain_user;
  EXPECT_THAT(error_of(file), AllOf(HasSubstr("data.path: cannot read"), HasSubstr("secret"),
                                    HasSubstr("Permission denied")));
}

TEST(ByteStream, AFileThatShrinksIsAnErrorAndNotASignal) {
  const TextFolder folder;
  const auto file = folder.write("a", std::string(10000, 'x'));
  const ByteStream stream("data.path", {file});
  std::filesystem::resize_file(file, 100);
  EXPECT_THROW(text_at(stream, 9000, 10), std::runtime_error);
}

TEST(ByteStream, AFileThatGrowsKeepsTheLengthItHad) {
  const TextFolder folder;
  const auto file = folder.write("a", "abc");
  const ByteStream stream("data.path", {file, folder.write("b", "d")});
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_EQ(text_at(stream, 0, 4), "abcd");
}

}  // namespace
}  // namespace phalanx
