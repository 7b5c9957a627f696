// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/stored_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/data/places.h"
#include "tests/trainer/data/text_folder.h"
#include "tests/trainer/io/without_privileges.h"
#include "trainer/base/user_error.h"
#include "trainer/data/concatenated_tokens.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<const TokenSet> bytes_of(const std::filesystem::path& path) {
  const DataFile file("data.path", path);
  const auto size = static_cast<int64_t>(file.size());
  return std::make_shared<StoredTokens>(file, 0, size, TokenType::uint8);
}

std::vector<int64_t> tokens_at(const TokenSet& set, int64_t begin, size_t count) {
  std::vector<int64_t> tokens(count);
  set.read(begin, tokens);
  return tokens;
}

std::string text_at(const TokenSet& set, int64_t begin, size_t count) {
  const auto tokens = tokens_at(set, begin, count);
  return {tokens.begin(), tokens.end()};
}

std::string error_of(const std::filesystem::path& path) {
  try {
    bytes_of(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

template <class Stored>
DataFile file_of(const TextFolder& folder, const std::vector<Stored>& tokens) {
  std::string content(tokens.size() * sizeof(Stored), '\0');
  std::memcpy(content.data(), tokens.data(), content.size());
  static int count = 0;  // one that is in use must not be written again
  return {"file", folder.write("tokens" + std::to_string(count++), content)};
}

TEST(ConcatenatedTokens, ReadAcrossFilesAndEmptyOnes) {
  const TextFolder folder;
  const ConcatenatedTokens set({bytes_of(folder.write("a", "abc")), bytes_of(folder.write("b", "")),
                                bytes_of(folder.write("c", "d")),
                                bytes_of(folder.write("d", "efgh"))});
  ASSERT_EQ(set.size(), 8);
  EXPECT_EQ(set.element(), "bytes");
  const std::string all = "abcdefgh";
  for (size_t begin = 0; begin < all.size(); ++begin) {
    for (size_t count = 0; begin + count <= all.size(); ++count) {
      EXPECT_EQ(text_at(set, static_cast<int64_t>(begin), count), all.substr(begin, count));
    }
  }
  EXPECT_THAT(places_of(set.document_begins(0, 8)), ElementsAre(0, 3, 4));
  EXPECT_THAT(places_of(set.document_begins(1, 4)), ElementsAre(3));
  EXPECT_THAT(set.document_begins(4, 4), IsEmpty());
  EXPECT_THAT(set.place_of(5), AllOf(HasSubstr("/d'"), HasSubstr("token 1")));
}

TEST(ConcatenatedTokens, OfNothingAreEmpty) { EXPECT_EQ(ConcatenatedTokens({}).size(), 0); }

TEST(StoredTokens, WidenEveryByteUnsigned) {
  const TextFolder folder;
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  std::vector<int64_t> expected(256);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(tokens_at(*bytes_of(folder.write("all", all)), 0, 256), expected);
}

TEST(StoredTokens, WidenEveryType) {
  const TextFolder folder;
  const auto read = [&](const auto& stored, TokenType type) {
    const auto count = static_cast<int64_t>(stored.size());
    const StoredTokens set(file_of(folder, stored), 0, count, type);
    EXPECT_EQ(set.element(), "tokens");
    return tokens_at(set, 1, stored.size() - 1);
  };
  EXPECT_THAT(read(std::vector<int8_t>{0, -1, 127}, TokenType::int8), ElementsAre(-1, 127));
  EXPECT_THAT(read(std::vector<uint16_t>{0, 65535, 7}, TokenType::uint16), ElementsAre(65535, 7));
  EXPECT_THAT(read(std::vector<int16_t>{0, -2, 32767}, TokenType::int16), ElementsAre(-2, 32767));
  EXPECT_THAT(read(std::vector<uint32_t>{0, 4294967295U}, TokenType::uint32),
              ElementsAre(4294967295));
  EXPECT_THAT(read(std::vector<int32_t>{0, -3}, TokenType::int32), ElementsAre(-3));
  EXPECT_THAT(read(std::vector<int64_t>{0, int64_t{1} << 40}, TokenType::int64),
              ElementsAre(int64_t{1} << 40));
}

TEST(StoredTokens, OfAPartOfAFile) {
  const TextFolder folder;
  const auto file = file_of<uint16_t>(folder, {1, 2, 3, 4, 5});
  const StoredTokens set(file, 2, 3, TokenType::uint16);
  EXPECT_EQ(tokens_at(set, 0, 3), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_THROW(StoredTokens(file, 2, 5, TokenType::uint16), std::invalid_argument);
  EXPECT_THROW(StoredTokens(file, 11, 0, TokenType::uint16), std::invalid_argument);
  EXPECT_THROW(StoredTokens(file, 0, int64_t{1} << 62, TokenType::int64), std::invalid_argument);
}

TEST(StoredTokens, ADocumentBeginsAtItsTokenOrBehindThatOfTheOneBefore) {
  const TextFolder folder;
  const auto file = file_of<uint16_t>(folder, {9, 1, 2, 9, 9, 3, 9});
  const auto begins = [&](bool is_first, int64_t begin, int64_t end) {
    const StoredTokens tokens(file, 0, 7, TokenType::uint16, DocumentEnds{9, is_first});
    const auto documents = tokens.document_begins(begin, end);
    for (const auto& document : documents) EXPECT_EQ(document.is_end_of_text, is_first);
    return places_of(documents);
  };
  EXPECT_THAT(begins(true, 0, 7), ElementsAre(0, 3, 4, 6));
  EXPECT_THAT(begins(false, 0, 7), ElementsAre(0, 1, 4, 5));
  // Any part gives what the whole has there.
  for (const bool is_first : {true, false}) {
    const auto all = begins(is_first, 0, 7);
    for (int64_t begin = 0; begin <= 7; ++begin) {
      for (int64_t end = begin; end <= 7; ++end) {
        std::vector<int64_t> expected;
        for (const int64_t place : all) {
          if (place >= begin && place < end) expected.push_back(place);
        }
        EXPECT_EQ(begins(is_first, begin, end), expected) << begin << " to " << end;
      }
    }
  }
}

TEST(StoredTokens, ADocumentMayGoOnFromOneFileToTheNext) {
  const TextFolder folder;
  const auto part = [&](const std::vector<uint16_t>& tokens) {
    const auto count = static_cast<int64_t>(tokens.size());
    return std::make_shared<StoredTokens>(file_of(folder, tokens), 0, count, TokenType::uint16,
                                          DocumentEnds{9, true});
  };
  const auto first = part({9, 1, 2});
  EXPECT_THAT(places_of(first->document_begins(0, 3)), ElementsAre(0));
  EXPECT_THAT(places_of(part({3, 9, 4})->document_begins(0, 3)), ElementsAre(1));
}

TEST(DataFile, SaysWhichFileCannotBeRead) {
  const TextFolder folder;
  EXPECT_THAT(error_of(folder.path()), HasSubstr("Is a directory"));
  EXPECT_THAT(error_of(folder.path() / "gone"), HasSubstr("No such file"));
  EXPECT_THAT(error_of("/dev/null"), HasSubstr("cannot read '/dev/null'"));
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of(pipe), HasSubstr("cannot read"));
}

TEST(DataFile, SaysWhichFileIsForbidden) {
  const TextFolder folder;
  const auto file = folder.write("secret", "abc");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const WithoutPrivileges plain_user;
  EXPECT_THAT(error_of(file), AllOf(HasSubstr("data.path: cannot read"), HasSubstr("secret"),
                                    HasSubstr("Permission denied")));
}

TEST(StoredTokens, AFileThatShrinksIsAnErrorAndNotASignal) {
  const TextFolder folder;
  const auto file = folder.write("a", std::string(10000, 'x'));
  const auto set = bytes_of(file);
  std::filesystem::resize_file(file, 100);
  EXPECT_THROW(text_at(*set, 9000, 10), std::runtime_error);
}

// A mapping would end the process by SIGBUS.
TEST(StoredTokens, AFileMayShrinkInTheMiddleOfARead) {
  const TextFolder folder;
  constexpr int64_t kBytes = 20'000'000;
  int broken = 0;
  for (int i = 0; i < 10; ++i) {
    const auto file = folder.write("a", std::string(kBytes, 'x'));
    const auto set = bytes_of(file);
    std::jthread shrink([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(i));
      std::filesystem::resize_file(file, 100);
    });
    try {
      text_at(*set, 0, kBytes);
    } catch (const std::runtime_error&) {
      ++broken;
    }
  }
  EXPECT_GT(broken, 0);
}

TEST(StoredTokens, AFileThatGrowsKeepsTheLengthItHad) {
  const TextFolder folder;
  const auto file = folder.write("a", "abc");
  const ConcatenatedTokens set({bytes_of(file), bytes_of(folder.write("b", "d"))});
  std::ofstream(file, std::ios::app) << "more";
  EXPECT_EQ(text_at(set, 0, 4), "abcd");
}

}  // namespace
}  // namespace phalanx
