// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/token_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/stored_numbers.h"
#include "tests/trainer/data/text_folder.h"
#include "trainer/data/concatenated_tokens.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/token_batch.h"

namespace phalanx {
namespace {

using testing::ElementsAre;

std::shared_ptr<const TokenSet> bytes_of(const TextFolder& folder,
                                         const std::vector<std::string>& texts) {
  std::vector<std::shared_ptr<const TokenSet>> parts;
  for (const auto& text : texts) {
    const DataFile file("file", folder.write("f" + std::to_string(parts.size()), text));
    const auto size = static_cast<int64_t>(text.size());
    parts.push_back(std::make_shared<StoredTokens>(file, 0, size, TokenType::uint8));
  }
  return std::make_shared<ConcatenatedTokens>(std::move(parts));
}

std::string fingerprint_of(const std::vector<std::string>& texts, int64_t length = 2) {
  const TextFolder folder;
  const auto bytes = bytes_of(folder, texts);
  return TokenBlocks({{bytes, 0, bytes->size()}}, length).fingerprint();
}

std::string text_of(const at::Tensor& tokens) {
  std::string text;
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    text += static_cast<char>(tokens.const_data_ptr<int64_t>()[i]);
  }
  return text;
}

TEST(TokenBlocks, CutsARangeIntoSequencesWithTheirNextTokens) {
  const TextFolder folder;
  const TokenBlocks blocks({{bytes_of(folder, {"abcde", "fghij"}), 1, 9}}, 3);
  EXPECT_EQ(blocks.size(), 2);
  const std::vector<int64_t> indices{1, 0};
  const auto batch = blocks.batch(indices);
  const auto& tokens = static_cast<const TokenBatch&>(*batch);
  EXPECT_EQ(tokens.samples, 2);
  EXPECT_EQ(tokens.tokens, 6);
  EXPECT_EQ(tokens.inputs.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(tokens.inputs.scalar_type(), at::kLong);
  EXPECT_EQ(text_of(tokens.inputs), "efgbcd");
  EXPECT_EQ(text_of(tokens.targets), "fghcde");
}

TEST(TokenBlocks, TheLastTokenIsATargetOnly) {
  const TextFolder folder;
  const auto bytes = bytes_of(folder, {"abcdefg"});
  EXPECT_EQ(TokenBlocks({{bytes, 0, 7}}, 3).size(), 2);
  EXPECT_EQ(TokenBlocks({{bytes, 0, 6}}, 3).size(), 1);
  EXPECT_EQ(TokenBlocks({{bytes, 0, TokenBlocks::tokens_needed(6)}}, 6).size(), 1);
  EXPECT_THROW(TokenBlocks({{bytes, 0, 6}}, 6), std::invalid_argument);
  EXPECT_THROW(TokenBlocks({{bytes, 0, 8}}, 3), std::invalid_argument);
}

TEST(TokenBlocks, CutsEachOfSeveralRangesByItself) {
  const TextFolder folder;
  const auto bytes = bytes_of(folder, {"abcdefghijkl"});
  const TokenBlocks blocks({{bytes, 0, 6}, {bytes, 7, 12}}, 2);
  EXPECT_THAT(blocks.samples_by_span(), testing::ElementsAre(2, 2));
  const auto batch = blocks.batch(std::vector<int64_t>{0, 1, 2, 3});
  const auto& tokens = static_cast<const TokenBatch&>(*batch);
  EXPECT_EQ(text_of(tokens.inputs), "abcdhijk");
  EXPECT_EQ(text_of(tokens.targets), "bcdeijkl");
  EXPECT_NE(blocks.fingerprint(), TokenBlocks({{bytes, 0, 6}}, 2).fingerprint());
  EXPECT_NE(blocks.fingerprint(), TokenBlocks({{bytes, 7, 12}, {bytes, 0, 6}}, 2).fingerprint());
}

TEST(TokenBlocks, FingerprintNamesContentNotFiles) {
  EXPECT_EQ(fingerprint_of({"abcdef"}), fingerprint_of({"ab", "cdef"}));
  EXPECT_NE(fingerprint_of({"abcdef"}), fingerprint_of({"abcdeg"}));
  EXPECT_NE(fingerprint_of({"abcdef"}), fingerprint_of({"abcdefg"}));
  EXPECT_NE(fingerprint_of({"abcdef"}, 2), fingerprint_of({"abcdef"}, 3));
}

TEST(TokenBlocks, FingerprintOfBigDataSeesItsEndsAndItsLength) {
  const std::string big(3 << 20, 'x');
  auto head = big;
  head.front() = 'y';
  auto tail = big;
  tail.back() = 'y';
  EXPECT_NE(fingerprint_of({big}), fingerprint_of({head}));
  EXPECT_NE(fingerprint_of({big}), fingerprint_of({tail}));
  EXPECT_NE(fingerprint_of({big}), fingerprint_of({big + "x"}));
}

// A run that began before other tokens were read goes on.
TEST(TokenBlocks, FingerprintOfBytesIsWhatItAlwaysWas) {
  EXPECT_EQ(fingerprint_of({"abcdef"}), "bytes-793dd556d4898fb0");
}

TEST(TokenBlocks, FingerprintOfTokensIsNotThatOfBytes) {
  const auto of = [](std::vector<int64_t> tokens) {
    const auto size = static_cast<int64_t>(tokens.size());
    return TokenBlocks({{std::make_shared<StoredNumbers>(std::move(tokens)), 0, size}}, 2)
        .fingerprint();
  };
  EXPECT_EQ(of({1, 2, 3}), of({1, 2, 3}));
  EXPECT_NE(of({1, 2, 3}), of({1, 2, 259}));
  EXPECT_TRUE(of({1, 2, 3}).starts_with("tokens-"));
}

TEST(TokenBlocks, NamesATokenThatTheModelDoesNotKnow) {
  const auto message_of = [](int64_t token,
                             std::optional<int64_t> vocabulary_size = 50) -> std::string {
    const auto tokens = std::make_shared<StoredNumbers>(std::vector<int64_t>{1, 2, 3, token, 5});
    const TokenBlocks blocks({{tokens, 0, 5}}, 2, {.vocabulary_size = vocabulary_size});
    try {
      blocks.batch(std::vector<int64_t>{1});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(message_of(49), "none");
  EXPECT_EQ(
      message_of(50),
      "token 3 is 50, but the model knows only tokens below 50 (model.vocab_size): raise that "
      "for a new model, else the tokens are not of its tokenizer, or the file is broken");
  EXPECT_EQ(message_of(int64_t{1} << 40, std::nullopt), "none");
  for (const std::optional<int64_t> vocabulary_size : {std::optional<int64_t>(50), {}}) {
    EXPECT_EQ(message_of(-1, vocabulary_size),
              "token 3 is -1, and no token is negative: the file is broken, or not of this format; "
              "`trainer data inspect` reads all of it");
  }
}

TEST(TokenBlocks, KeepsDocumentsApart) {
  // Documents [0 1 2] [3] [4 5 6 7] [8 9]; the last begins with an end-of-text token.
  const auto tokens =
      std::make_shared<StoredNumbers>(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                                      std::vector<DocumentBegin>{{0}, {3}, {4}, {8, true}});
  const TokenBlocks blocks({{tokens, 0, 10}}, 3, {.separates_documents = true});
  const auto batch = blocks.batch(std::vector<int64_t>{0, 1, 2});
  auto& sequences = static_cast<TokenBatch&>(*batch);
  EXPECT_THAT(numbers_in(sequences.inputs), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(numbers_in(sequences.positions), ElementsAre(0, 1, 2, 0, 0, 1, 0, 1, 0));
  EXPECT_THAT(numbers_in(sequences.targets),
              ElementsAre(1, 2, kNoTarget, kNoTarget, 5, 6, 7, 8, 9));
  EXPECT_EQ(sequences.tokens, 7);
  EXPECT_EQ(sequences.tensors().size(), 3u);
}

// Property: a place's position is the number of its document's tokens before it in the sequence.
TEST(TokenBlocks, PositionsCountFromTheLastBegin) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> numbers(60);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<DocumentBegin> documents;
    for (int64_t place = 0; place < 60; ++place) {
      if (random() % 5 == 0) documents.push_back({place, random() % 2 == 0});
    }
    const TokenBlocks blocks({{std::make_shared<StoredNumbers>(numbers, documents), 0, 60}}, 7,
                             {.separates_documents = true});
    for (int64_t sample = 0; sample < blocks.size(); ++sample) {
      const auto batch = blocks.batch(std::vector{sample});
      const auto& sequence = static_cast<const TokenBatch&>(*batch);
      const auto positions = numbers_in(sequence.positions);
      const auto targets = numbers_in(sequence.targets);
      int64_t valid = 0;
      for (int64_t i = 0; i < 7; ++i) {
        const auto begin_at = [&](int64_t place) {
          return std::find_if(documents.begin(), documents.end(),
                              [&](const auto& document) { return document.place == place; });
        };
        const bool begins = i == 0 || begin_at(sample * 7 + i) != documents.end();
        EXPECT_EQ(positions[i], begins ? 0 : positions[i - 1] + 1);
        const auto next = begin_at(sample * 7 + i + 1);
        const bool counts = next == documents.end() || next->is_end_of_text;
        EXPECT_EQ(targets[i], counts ? sample * 7 + i + 1 : kNoTarget);
        valid += counts ? 1 : 0;
      }
      EXPECT_EQ(sequence.tokens, valid);
    }
  }
}

}  // namespace
}  // namespace phalanx
