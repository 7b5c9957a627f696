// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/require_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/trainer/data/text/packed.h"
#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;

std::string problem_of(std::string_view begin) { return no_text_problem(begin).value_or("none"); }

std::string random_bytes(size_t count) {
  std::mt19937 draw(3);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(draw() % 256);
  return bytes;
}

struct Begin {
  std::string bytes;
  std::string name;  // What the file is called in the message.
};

const std::vector<Begin> kFormats{
    {"PAR1\x15\x04\x15\x10"s, "a Parquet file"},
    {"ARROW1\0\0\xff\xff\xff\xff"s, "an Arrow file"},
    {"\xff\xff\xff\xff\x10\x01\0\0"s, "an Arrow stream"},
    {"ORC\x0a\x03\0\0\0"s, "an ORC file"},
    {"Obj\x01\x04\x14"s, "an Avro file"},
    {"SQLite format 3\0\x10"s, "an SQLite database"},
    {"\x89HDF\r\n\x1a\n"s, "an HDF5 file"},
    {"\x93NUMPY\x01\0"s, "a NumPy array"},
    {"\x40\0\0\0\0\0\0\0{\"weight\":{\"dtype\":\"F32\""s, "a safetensors file"},
    {"GGUF\x03\0\0\0"s, "a GGUF file"},
    {"\x80\x04\x95"s, "a Python pickle"},
    {"\x88\xd8\x34\x01\x01\0\0\0"s, "a file of llm.c's tokens"},
    {"MMIDIDX\0\0\x01"s, "an index of Megatron's tokens"},
    {"PK\x03\x04\x14\0"s, "a zip archive, as .pt"},
    {"\x1f\x8b\x08\0"s, "packed by gzip"},
    {"\x28\xb5\x2f\xfd\x04"s, "packed by Zstandard"},
    {"\xfd"
     "7zXZ\0"s,
     "packed by xz"},
    {"BZh91AY&SY"s, "packed by bzip2"},
    {"a.txt" + std::string(252, '\0') +
         "ustar\0"
         "00"s,
     "a tar archive"},
    {"\x7f"
     "ELF\x02\x01\x01\0"s,
     "a program or library"},
    {"%PDF-1.7\n"s, "a PDF document"},
    {"\x89PNG\r\n\x1a\n"s, "a PNG picture"},
    {"RIFF\x24\0\0\0WAVE"s, "a WAV, AVI or WebP file"},
    {"\xff\xfeh\0i\0"s, "in UTF-16"},
    {"\xff\xfe\0\0h\0\0\0"s, "in UTF-32"},
};

TEST(NoText, IsNamedWhereItsFormatIsKnown) {
  for (const auto& [bytes, name] : kFormats) {
    EXPECT_THAT(problem_of(bytes),
                AllOf(testing::StartsWith("is " + name), HasSubstr(", not text in UTF-8: ")));
  }
}

TEST(NoText, IsWhatHasTooManyBytesOfNone) {
  EXPECT_THAT(problem_of(random_bytes(5000)),
              AllOf(HasSubstr("is not text in UTF-8: "),
                    HasSubstr("% of its first 4096 bytes are none, and 10% may be")));
  std::string tokens;  // As nanoGPT's files have them: nothing says that they are tokens.
  for (int token = 0; token < 2000; ++token) tokens += {static_cast<char>(token % 90), '\0'};
  EXPECT_THAT(problem_of(tokens), HasSubstr("is not text"));
  const std::string text(900, 'a');
  EXPECT_EQ(problem_of(text + std::string(100, '\0')), "none");
  EXPECT_THAT(problem_of(text + std::string(101, '\0')),
              HasSubstr("10.1% of its first 1001 bytes"));
  EXPECT_EQ(problem_of("a" + std::string(15, '\xff')), "none") << "of a short file";
  EXPECT_THAT(problem_of("a" + std::string(16, '\xff')), HasSubstr("94.1% of its first 17 bytes"));
  // Behind the bytes that are looked at.
  EXPECT_EQ(problem_of(std::string(kShowsText, 'a') + random_bytes(4096)), "none");
}

TEST(NoText, IsNoText) {
  std::string cyrillic;
  while (cyrillic.size() < kShowsText + 1) cyrillic += "\xd0\xb6";  // The end cuts one.
  std::string latin;  // French in Latin-1: a few bytes are replaced, as ever.
  while (latin.size() < 2000) latin += "La libert\xe9 est \xe0 tous, et rien d'autre; ";
  for (const std::string& text :
       {""s, "a"s, "ORCHARD"s, "PAR1 is a name"s, "RIFFs and GGUF"s, "MZ, BZh and ID3"s,
        "GIF89a is a format of pictures"s, "{\"text\": \"\\u0000\"}"s,
        "\x1b[1mbold\x1b[0m\r\n\t\f"s, "\xef\xbb\xbfwith a mark"s, cyrillic.substr(0, kShowsText),
        "x" + cyrillic, latin, "version https://git-lfs.github.com/spec/v1\n"s}) {
    EXPECT_EQ(problem_of(text), "none") << text.substr(0, 40);
  }
}

class RequireTexts : public testing::Test {
 protected:
  static std::string error_of(const FileList& files, Packed packed, const AnyBytes& any = {}) {
    try {
      require_texts(files, packed, any);
    } catch (const UserError& e) {
      return e.what();
    }
    return "none";
  }

  TextFolder folder_;
};

TEST_F(RequireTexts, NamesTheFileAndWhatAllowsIt) {
  const FileList files{folder_.write("a", "text"), folder_.write("b", kFormats.front().bytes)};
  EXPECT_THAT(
      error_of(files, Packed::unpacked, {.allowed_by = "--any-bytes"}),
      AllOf(testing::StartsWith("'" + (folder_.path() / "b").string() + "' is a Parquet file"),
            testing::EndsWith("; --any-bytes reads any bytes as they are")));
  EXPECT_THAT(error_of(files, Packed::unpacked), testing::EndsWith("lines=True)"));
  EXPECT_EQ(error_of(files, Packed::unpacked, {.are_allowed = true}), "none");
}

TEST_F(RequireTexts, LooksIntoPackedFilesThatAreUnpackedLater) {
  const FileList text{folder_.write("a.gz", gzip("text"))};
  EXPECT_EQ(error_of(text, Packed::unpacked), "none");
  EXPECT_THAT(error_of(text, Packed::as_they_are), HasSubstr("is packed by gzip"));
  const FileList tar{folder_.write("b.tar.gz", gzip(kFormats[18].bytes))};
  EXPECT_THAT(error_of(tar, Packed::unpacked), HasSubstr("is a tar archive"));
}

TEST_F(RequireTexts, LeavesFilesThatCannotBeReadToTheirReader) {
  EXPECT_EQ(
      error_of({folder_.path() / "nowhere", folder_.write("a.gz", "\x1f\x8b")}, Packed::unpacked),
      "none");
}

// It looks at some of many files, which are few enough for any start.
TEST_F(RequireTexts, LooksAtSomeOfManyFiles) {
  FileList files;
  const std::string text = folder_.write("text", "text").native();
  const std::string weights = folder_.write("w.safetensors", kFormats[8].bytes).native();
  for (int i = 0; i < 2500; ++i) files.add(i == 1234 ? weights : text);
  EXPECT_THAT(error_of(files, Packed::as_they_are),
              HasSubstr("w.safetensors' is a safetensors file"));
  FileList unnamed;
  const std::string same = folder_.write("w", kFormats[8].bytes).native();
  for (int i = 0; i < 2500; ++i) unnamed.add(i > 1700 ? same : text);
  EXPECT_THAT(error_of(unnamed, Packed::as_they_are), HasSubstr("w' is a safetensors file"));
}

}  // namespace
}  // namespace phalanx
