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
#include "trainer/data/open_files.h"

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

TEST(JsonLines, MayBeTheObjectsOfAnArray) {
  const TextFolder folder;
  const std::string text = "[\n  {\"n\": 1},\n  {\n    \"n\": 2\n  }, [3]\n]\n";
  const auto plain = folder.write("a.json", text);
  const auto packed = write_gzip(folder.path() / "b.json.gz", "[{\"n\": 4}]");
  const JsonLines lines("files", {plain, packed, folder.write("c.jsonl", line(5))});
  ASSERT_EQ(lines.size(), 5);
  EXPECT_EQ(lines.object(0).at("n"), 1);
  EXPECT_EQ(lines.object(1).at("n"), 2);
  EXPECT_EQ(lines.object(3).at("n"), 4);
  EXPECT_EQ(lines.object(4).at("n"), 5);
  EXPECT_EQ(lines.place_of(1), "'" + plain.string() + "', line 3");
  try {
    (void)lines.object(2);
    ADD_FAILURE();
  } catch (const BrokenSampleError& error) {
    EXPECT_EQ(error.what(), "'" + plain.string() + "', line 5: the element is no JSON object");
  }
}

TEST(JsonLines, MayBeInMoreFilesThanMayBeOpen) {
  const TextFolder folder;
  FileList files;
  for (int i = 0; i < 400; ++i) {
    files.add(folder.write(std::to_string(i) + ".jsonl", line(i)).native());
  }
  const JsonLines lines("files", files);
  for (int i = 0; i < 400; ++i) EXPECT_EQ(lines.object(i).at("n"), i);
  EXPECT_LE(OpenFiles::instance().size(), OpenFiles::kMost);
}

TEST(JsonLines, SayWhatIsWrongWithoutNamesOfALibrary) {
  const TextFolder folder;
  try {
    const JsonLines lines("files", {folder.write("a.jsonl", "{\"n\": x}\n")});
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("line 1: the line is no JSON: line 1, column 7"),
                                    testing::Not(HasSubstr("json."))));
  }
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
  EXPECT_THAT(error(folder.write("a.parquet", std::string("PAR1\x15\x04", 6))),
              HasSubstr("a.parquet': it is a Parquet file, not text in UTF-8: write its texts"));
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
