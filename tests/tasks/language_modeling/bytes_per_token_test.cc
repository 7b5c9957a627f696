// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_modeling/bytes_per_token.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/trainer/data/stored_numbers.h"
#include "trainer/base/user_error.h"
#include "trainer/data/token_blocks.h"

namespace phalanx {
namespace {

/// Token n stands for n bytes; 3 ends a text.
class Counted : public Tokenizer {
 public:
  void encode(std::string_view, SpecialText, std::vector<int32_t>&) const override {}
  void append_bytes(int32_t token, DecodingState&, std::string& bytes) const override {
    bytes.append(static_cast<size_t>(token), 'x');
  }
  int32_t vocabulary_size() const override { return 5; }
  std::optional<int32_t> end_of_text() const override { return 3; }
};

double mean_of(std::vector<int64_t> tokens, int64_t length) {
  const auto size = static_cast<int64_t>(tokens.size());
  const TokenBlocks blocks({{std::make_shared<StoredNumbers>(std::move(tokens)), 0, size}}, length,
                           {});
  return bytes_per_token(blocks, Counted());
}

TEST(BytesPerToken, IsTheMeanOfTheTargets) {
  EXPECT_DOUBLE_EQ(mean_of({4, 1, 2, 4, 1}, 2), 2);        // 1 2 4 1
  EXPECT_DOUBLE_EQ(mean_of({4, 1, 3, 4, 1}, 4), 6.0 / 4);  // the end of a text has no bytes
}

TEST(BytesPerToken, LeavesOutTokensBeyondTheTokenizer) {
  EXPECT_DOUBLE_EQ(mean_of({0, 4, 9, 2, 0, 2, 2, 2, 2, 2, 2}, 10), 2);
}

TEST(BytesPerToken, RefusesTokensOfAnotherTokenizer) {
  try {
    mean_of({0, 4, 9, 2, 8}, 4);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "of 4 tokens of the validation data, 2 are beyond the 5 tokens of the tokenizer: "
                 "they are of another one; set task.data.tokenizer to the one that made them");
  }
}

TEST(BytesPerToken, ReadsSamplesOfALargeSetAtEqualDistances) {
  std::vector<int64_t> tokens(3 * 4096 + 1, 1);
  for (size_t place = 1; place < tokens.size(); place += 3) tokens[place] = 2;
  EXPECT_DOUBLE_EQ(mean_of(std::move(tokens), 1), 2);  // of every third target, the first
}

}  // namespace
}  // namespace phalanx
