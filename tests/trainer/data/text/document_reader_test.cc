// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/document_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/text/packed.h"
#include "tests/trainer/data/text_folder.h"

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

TEST(IsJsonLines, GoesByTheName) {
  for (const char* name : {"a.jsonl", "x/a.jsonl.gz", "a.b.jsonl.zst"}) {
    EXPECT_TRUE(is_json_lines(name)) << name;
  }
  for (const char* name : {"a.txt", "jsonl", "a.json", "a.jsonl.txt"}) {
    EXPECT_FALSE(is_json_lines(name)) << name;
  }
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
