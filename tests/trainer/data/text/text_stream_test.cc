// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/text_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/trainer/data/text/packed.h"
#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A text of `size` bytes that packing does not make tiny.
std::string some_text(size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = "abcdefgh\n"[random() % 9];
  return text;
}

std::string read_all(TextStream& stream, size_t at_once) {
  std::string text;
  std::string part(at_once, '\0');
  while (const size_t count = stream.read(part)) text += part.substr(0, count);
  return text;
}

std::string error_of(const std::filesystem::path& path) {
  try {
    read_all(*open_text(path), 1000);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

class TextStreamOf : public testing::TestWithParam<std::string (*)(const std::string&)> {
 protected:
  TextFolder folder_;
};

TEST_P(TextStreamOf, ReadsEveryByte) {
  for (const size_t size : {0, 1, 5000, 2'000'000}) {
    const std::string text = some_text(size);
    const auto path = folder_.write("text", GetParam()(text));
    for (const size_t at_once : {77, 300'000}) {
      const auto stream = open_text(path);
      EXPECT_EQ(read_all(*stream, at_once), text);
      EXPECT_EQ(stream->read_of_file(), std::filesystem::file_size(path));
    }
  }
}

TEST_P(TextStreamOf, ReadsSeveralPartsAsOneText) {
  const auto path = folder_.write("text", GetParam()("one ") + GetParam()("") + GetParam()("two"));
  EXPECT_EQ(read_all(*open_text(path), 3), "one two");
}

TEST_P(TextStreamOf, PassesOverBytes) {
  const std::string text = some_text(700'000);
  const auto path = folder_.write("text", GetParam()(text));
  for (const size_t skipped : {0, 1, 600'000, 700'000}) {
    const auto stream = open_text(path);
    stream->skip(skipped);
    EXPECT_EQ(read_all(*stream, 100'000), text.substr(skipped));
  }
}

std::string plain(const std::string& text) { return text; }

INSTANTIATE_TEST_SUITE_P(EachForm, TextStreamOf, testing::Values(plain, gzip, zstd));

class PackedStream : public TextStreamOf {};

TEST_P(PackedStream, NamesTheFileThatIsCutOff) {
  const std::string packed = GetParam()(some_text(500'000));
  for (const size_t left : {size_t{5}, packed.size() / 2, packed.size() - 1}) {
    const auto path = folder_.write("text", packed.substr(0, left));
    EXPECT_THAT(error_of(path), AllOf(HasSubstr(path.string()), HasSubstr("is cut off at byte ")));
  }
}

TEST_P(PackedStream, NamesTheFileThatIsBroken) {
  std::string packed = GetParam()(some_text(500'000));
  for (size_t i = packed.size() / 2; i < packed.size() / 2 + 100; ++i) packed[i] ^= 0x55;
  EXPECT_THAT(error_of(folder_.write("text", packed)), HasSubstr("is broken at byte "));
  EXPECT_THAT(error_of(folder_.write("text", GetParam()("a") + "garbage that is none")),
              HasSubstr("is broken at byte 1"));
}

INSTANTIATE_TEST_SUITE_P(EachForm, PackedStream, testing::Values(gzip, zstd));

}  // namespace
}  // namespace phalanx
