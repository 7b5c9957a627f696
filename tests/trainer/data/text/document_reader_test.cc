// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/document_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/data/text/packed.h"
#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using Files = std::vector<std::filesystem::path>;

std::vector<std::string> texts_of(const std::vector<Document>& documents) {
  std::vector<std::string> texts;
  for (const Document& document : documents) texts.push_back(document.text);
  return texts;
}

std::vector<std::string> all_of(const Files& files, DocumentUnit unit) {
  return texts_of(DocumentReader(files, unit, {}).next(1 << 30));
}

TEST(DocumentReader, CutsByItsUnit) {
  const TextFolder folder;
  const Files files{folder.write("a", "1\n2\n\n\n3"), folder.write("b", ""),
                    folder.write("c", "4\n")};
  EXPECT_THAT(all_of(files, DocumentUnit::file), ElementsAre("1\n2\n\n\n3", "4\n"));
  EXPECT_THAT(all_of(files, DocumentUnit::line), ElementsAre("1", "2", "", "", "3", "4"));
  EXPECT_THAT(all_of(files, DocumentUnit::paragraph), ElementsAre("1\n2", "3", "4\n"));
}

TEST(DocumentReader, ReadsJsonlInLines) {
  const TextFolder folder;
  const Files files{folder.write("a.jsonl.gz", gzip("{}\n[1]\n"))};
  EXPECT_THAT(all_of(files, DocumentUnit::file), ElementsAre("{}", "[1]"));
}

// Lines of many lengths, some longer than what is read at once.
Files long_lines(const TextFolder& folder) {
  Files files;
  for (int file = 0; file < 3; ++file) {
    std::string text;
    for (int line = 0; line < 300; ++line) {
      text += std::string(line % 50 == 7 ? 300'000 : line * 7 % 90, static_cast<char>('a' + file));
      text += "\n";
    }
    const std::string name = std::to_string(file);
    files.push_back(folder.write(name, file == 1 ? zstd(text) : text));
  }
  return files;
}

TEST(DocumentReader, GoesOnFromEveryPosition) {
  const TextFolder folder;
  const Files files = long_lines(folder);
  const auto all = all_of(files, DocumentUnit::line);
  ASSERT_EQ(all.size(), 900);
  DocumentReader reader(files, DocumentUnit::line, {});
  size_t done = 0;
  while (true) {
    DocumentReader again(files, DocumentUnit::line, reader.position());
    const auto documents = reader.next(5000);
    EXPECT_EQ(texts_of(again.next(5000)), texts_of(documents));
    if (documents.empty()) break;
    for (const Document& document : documents) EXPECT_EQ(document.text, all[done++]);
  }
  EXPECT_EQ(done, all.size());
}

TEST(DocumentReader, ReadsTheObjectsOfAnArray) {
  const TextFolder folder;
  const std::string text = " [ {\"a\": \"]},{\\\"\"},\n{\"b\": [1, {\"c\": 2}]} , {}\n]\n";
  const std::vector<std::string> expected{R"({"a": "]},{\""})", R"({"b": [1, {"c": 2}]})", "{}"};
  EXPECT_EQ(all_of({folder.write("a.json", text)}, DocumentUnit::file), expected);
  EXPECT_EQ(all_of({folder.write("b.json.gz", gzip(text))}, DocumentUnit::line), expected);
  EXPECT_THAT(all_of({folder.write("c.json", "[]")}, DocumentUnit::file), testing::IsEmpty());
  const Files files{folder.write("a.json", text)};
  const auto documents = DocumentReader(files, DocumentUnit::file, {}).next(1000);
  EXPECT_EQ(documents[1].offset, static_cast<int64_t>(text.find("{\"b")));
  EXPECT_EQ(documents[1].form, TextForm::json_array);
}

TEST(DocumentReader, GoesOnInAnArray) {
  const TextFolder folder;
  std::string text = "[";
  std::vector<std::string> expected;
  for (int i = 0; i < 200; ++i) {
    expected.push_back(std::string("{\"a\": \"") + std::string(i % 20 == 7 ? 300'000 : i, 'x') +
                       "\"}");
    text += (i == 0 ? "" : ",\n") + expected.back();
  }
  const Files files{folder.write("a.json", text + "]"), folder.write("b.json", "[{}]")};
  expected.emplace_back("{}");
  DocumentReader reader(files, DocumentUnit::file, {});
  std::vector<std::string> found;
  while (true) {
    DocumentReader again(files, DocumentUnit::file, reader.position());
    const auto documents = texts_of(reader.next(500));
    EXPECT_EQ(texts_of(again.next(500)), documents);
    if (documents.empty()) break;
    found.insert(found.end(), documents.begin(), documents.end());
  }
  EXPECT_TRUE(found == expected);
}

TEST(DocumentReader, RefusesAnArrayThatIsNone) {
  const TextFolder folder;
  const auto error_of = [&](const std::string& text) -> std::string {
    try {
      all_of({folder.write("a.json", text)}, DocumentUnit::file);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("[{}"), testing::HasSubstr("a.json' is cut off"));
  EXPECT_THAT(error_of("[{\"a"), testing::HasSubstr("is cut off"));
  EXPECT_THAT(error_of("[{},"), testing::HasSubstr("is cut off"));
  EXPECT_THAT(error_of("[{}] {}"),
              testing::HasSubstr("has more behind the end of its array, at byte 5"));
  EXPECT_THAT(error_of("[{} {}]"), testing::HasSubstr("has no comma between"));
  EXPECT_THAT(error_of("[{},]"), testing::HasSubstr("has nothing in the place of an object"));
  EXPECT_THAT(error_of("[{},,{}]"), testing::HasSubstr("has nothing in the place of an object"));
}

TEST(DocumentReader, ReadsOtherJsonAsPlainText) {
  const TextFolder folder;
  for (const char* text : {"{\"a\": 1}", "[1, 2]", "text", " "}) {
    const Files files{folder.write("a.json", text)};
    const auto documents = DocumentReader(files, DocumentUnit::file, {}).next(1000);
    ASSERT_EQ(documents.size(), 1);
    EXPECT_EQ(documents[0].text, text);
    EXPECT_TRUE(documents[0].begins_plain_json);
  }
  const Files lines{folder.write("a.json", "1\n2\n")};
  const auto documents = DocumentReader(lines, DocumentUnit::line, {}).next(1000);
  EXPECT_TRUE(documents[0].begins_plain_json);
  EXPECT_FALSE(documents[1].begins_plain_json);
}

// Cuts a document wherever it may, but only behind an 'e'.
size_t behind_e(std::string_view text) {
  const size_t found = text.rfind('e');
  return found == std::string_view::npos ? 0 : found + 1;
}

struct Parts {
  std::vector<std::string> documents;
  size_t count = 0;
  size_t largest = 0;
};

Parts parts_of(const Files& files, DocumentUnit unit) {
  Parts parts;
  DocumentReader reader(files, unit, {}, behind_e);
  while (true) {
    DocumentReader again(files, unit, reader.position(), behind_e);
    const std::vector<Document> documents = reader.next(300'000);
    EXPECT_TRUE(texts_of(again.next(300'000)) == texts_of(documents)) << "after a part";
    if (documents.empty()) return parts;
    for (const Document& document : documents) {
      if (document.begins) parts.documents.emplace_back();
      parts.documents.back() += document.text;
      parts.largest = std::max(parts.largest, document.text.size());
      ++parts.count;
    }
  }
}

TEST(DocumentReader, GivesALongDocumentInParts) {
  const TextFolder folder;
  std::string text;
  for (int i = 0; text.size() < 5'000'000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string blank = text + "\n" + text + "\n\n\nend\n";
  const Files files{folder.write("a", blank), folder.write("b", gzip(text)),
                    folder.write("c", "e")};
  for (const auto unit : {DocumentUnit::file, DocumentUnit::line, DocumentUnit::paragraph}) {
    const Parts parts = parts_of(files, unit);
    EXPECT_TRUE(parts.documents == all_of(files, unit));
    EXPECT_LE(parts.largest, size_t{1} << 20);
    if (unit == DocumentUnit::line) continue;
    EXPECT_GT(parts.count, parts.documents.size() + 10);
  }
}

TEST(DocumentReader, KeepsSeparatorsWholeWhereItCuts) {
  const TextFolder folder;
  constexpr size_t kWindow = size_t{1} << 20;
  for (size_t before = kWindow - 4; before < kWindow + 4; ++before) {
    const Files files{folder.write("a", std::string(before, 'e') + "\n\n" + "e\n")};
    const Parts parts = parts_of(files, DocumentUnit::paragraph);
    EXPECT_TRUE(parts.documents == all_of(files, DocumentUnit::paragraph)) << before;
  }
}

TEST(DocumentReader, HoldsADocumentThatCannotBeCut) {
  const TextFolder folder;
  const Files files{
      folder.write("a", std::string(3'000'000, 'x')),
      folder.write("b", std::string(2'000'000, 'x') + "e" + std::string(900'000, 'x'))};
  const Parts parts = parts_of(files, DocumentUnit::file);
  EXPECT_TRUE(parts.documents == all_of(files, DocumentUnit::file));
  EXPECT_EQ(parts.count, 3);
}

TEST(DocumentReader, SaysWhereADocumentBegins) {
  const TextFolder folder;
  const Files files{folder.write("a", "12\n3\n"), folder.write("b", "4")};
  const auto documents = DocumentReader(files, DocumentUnit::line, {}).next(100);
  ASSERT_EQ(documents.size(), 3);
  EXPECT_EQ(documents[1].offset, 3);
  EXPECT_EQ(documents[2].file, 1);
  EXPECT_EQ(documents[2].offset, 0);
}

}  // namespace
}  // namespace phalanx
