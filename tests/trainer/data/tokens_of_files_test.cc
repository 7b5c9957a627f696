// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/tokens_of_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/data/places.h"
#include "tests/trainer/data/text_folder.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const DataFiles> files_of(const TextFolder& folder,
                                          const std::vector<std::string>& texts) {
  FileList files;
  for (const std::string& text : texts) {
    files.add(folder.write(std::to_string(files.size()), text).native());
  }
  return std::make_shared<const DataFiles>("path", files);
}

std::vector<int64_t> tokens_at(const TokenSet& set, int64_t begin, int64_t count) {
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  set.read(begin, tokens);
  return tokens;
}

TEST(TokensOfFiles, ReadsAcrossFilesAndEmptyOnes) {
  const TextFolder folder;
  const auto files = files_of(folder, {"", "abc", "", "", "d", "efgh", ""});
  const TokensOfFiles set(files, [](const DataFile&) { return TokenLayout(); });
  ASSERT_EQ(set.size(), 8);
  EXPECT_EQ(set.element(), "bytes");
  const std::string all = "abcdefgh";
  for (int64_t begin = 0; begin < 8; ++begin) {
    for (int64_t count = 0; begin + count <= 8; ++count) {
      const auto tokens = tokens_at(set, begin, count);
      EXPECT_EQ(std::string(tokens.begin(), tokens.end()), all.substr(begin, count));
    }
  }
  EXPECT_THAT(places_of(set.document_begins(0, 8)), ElementsAre(0, 3, 4));
  EXPECT_THAT(places_of(set.document_begins(1, 4)), ElementsAre(3));
  EXPECT_THAT(set.place_of(5), AllOf(HasSubstr("/5'"), HasSubstr("token 1")));
  EXPECT_THAT(set.file_of(3), HasSubstr("/4"));
}

TEST(TokensOfFiles, EachFileMayHaveItsLayout) {
  const TextFolder folder;
  const std::string small("\x01\0\x02\0", 4);
  const std::string large("head\x03\0\0\0\x04\0\0\0", 12);
  const auto files = files_of(folder, {small, large, small});
  const TokensOfFiles set(files, [](const DataFile& file) {
    if (file.size() == 4) return TokenLayout{.type = TokenType::uint16};
    return TokenLayout{.type = TokenType::uint32,
                       .offset = 4,
                       .ends = DocumentEnds{.end_of_text = 4, .is_first = true}};
  });
  EXPECT_EQ(tokens_at(set, 0, set.size()), (std::vector<int64_t>{1, 2, 3, 4, 1, 2}));
  EXPECT_EQ(set.element(), "tokens");
  EXPECT_THAT(places_of(set.document_begins(0, 6)), ElementsAre(0, 3, 4));
}

TEST(TokensOfFiles, OfNothingAreEmpty) {
  const TextFolder folder;
  const TokensOfFiles set(files_of(folder, {""}), [](const DataFile&) { return TokenLayout(); });
  EXPECT_EQ(set.size(), 0);
}

}  // namespace
}  // namespace phalanx
