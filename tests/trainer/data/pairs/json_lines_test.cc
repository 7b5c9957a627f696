// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string line(int number) { return "{\"n\": " + std::to_string(number) + "}\n"; }

std::filesystem::path write_gzip(const std::filesystem::path& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return path;
}

std::vector<int> numbers_of(const JsonLines& lines) {
  std::vector<int> numbers;
  for (int64_t i = 0; i < lines.size(); ++i) numbers.push_back(lines.object(i).at("n").get<int>());
  return numbers;
}

TEST(JsonLines, AreThoseOfAllFilesWithoutEmptyOnes) {
  const TextFolder folder;
  const auto a = folder.write("a.jsonl", line(1) + "\n  \r\n" + line(2) + "{\"n\": 3}");
  const auto b = folder.write("b.jsonl", "\n{\"n\": 4}\r\n");
  const JsonLines lines("files", {a, b});
  EXPECT_EQ(numbers_of(lines), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(lines.bytes(0), 8);
  EXPECT_EQ(lines.place_of(2), "'" + a.string() + "', line 5");
  EXPECT_EQ(lines.place_of(3), "'" + b.string() + "', line 2");
  EXPECT_EQ(lines.file_of(3), b.string());
}

TEST(JsonLines, MayBePackedAndLongerThanAPartThatIsRead) {
  const TextFolder folder;
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += line(i);
  text += "{\"n\": 60000, \"long\": \"" + std::string(700'000, 'x') + "\"}\n" + line(60'001);
  const JsonLines plain("files", {folder.write("a.jsonl", text)});
  const JsonLines packed("files", {write_gzip(folder.path() / "a.jsonl.gz", text)});
  ASSERT_EQ(plain.size(), 60'002);
  EXPECT_EQ(numbers_of(plain), numbers_of(packed));
  EXPECT_EQ(numbers_of(plain).back(), 60'001);
  EXPECT_EQ(packed.place_of(60'001),
            "'" + (folder.path() / "a.jsonl.gz").string() + "', line 60002");
  EXPECT_EQ(plain.fingerprint(), packed.fingerprint());
  const JsonLines cut("files", {folder.write("1.jsonl", text.substr(0, 9)),
                                folder.write("2.jsonl", "\n" + text.substr(9))});
  EXPECT_EQ(plain.fingerprint(), cut.fingerprint());
  EXPECT_NE(plain.fingerprint(),
            JsonLines("files", {folder.write("b.jsonl", text + line(1))}).fingerprint());
}

TEST(JsonLines, NameABrokenLine) {
  const TextFolder folder;
  const JsonLines lines("files", {folder.write("a.jsonl", line(1) + "\n{\"n\": \n[1]\n")});
  ASSERT_EQ(lines.size(), 3);
  try {
    lines.object(1);
    FAIL();
  } catch (const BrokenSampleError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("a.jsonl', line 3: the line is no JSON")));
    EXPECT_EQ(error.sample().kind, "a line that is no JSON object");
  }
  EXPECT_THROW(lines.object(2), BrokenSampleError);
}

TEST(JsonLines, RefuseFilesThatHoldNone) {
  const TextFolder folder;
  const auto error = [&](const std::filesystem::path& file) -> std::string {
    try {
      JsonLines("task.data.files", {file});
    } catch (const UserError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error(folder.write("empty.jsonl", "\n \n")),
              AllOf(HasSubstr("task.data.files: '"), HasSubstr("it has no lines")));
  EXPECT_THAT(error(folder.write("README.md", "# Pairs\n")),
              AllOf(HasSubstr("README.md', line 1: the line is no JSON")));
  EXPECT_THAT(error(folder.path() / "gone.jsonl"), HasSubstr("gone.jsonl"));
}

TEST(JsonLines, NoticeAFileThatBecameShorter) {
  const TextFolder folder;
  const auto file = folder.write("a.jsonl", line(1) + line(2));
  const JsonLines lines("files", {file});
  std::filesystem::resize_file(file, 10);
  EXPECT_THROW(lines.object(1), BrokenSampleError);
}

}  // namespace
}  // namespace phalanx
