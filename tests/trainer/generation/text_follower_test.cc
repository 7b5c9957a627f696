// SPDX-License-Identifier: Apache-2.0
#include "trainer/generation/text_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/utf8_repair.h"
#include "trainer/tokenizers/byte_tokenizer.h"

namespace phalanx {
namespace {

const ByteTokenizer kBytes;

std::vector<std::string> parts_of(std::string_view text, const std::vector<std::string>& stops,
                                  bool* is_stopped = nullptr) {
  TextFollower follower(kBytes, stops, {});
  std::vector<std::string> parts;
  for (const unsigned char byte : text) {
    if (follower.is_stopped()) break;
    parts.push_back(follower.add(byte));
  }
  parts.push_back(follower.finish());
  if (is_stopped != nullptr) *is_stopped = follower.is_stopped();
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += part;
  return text;
}

// Bytes of which many are parts of characters.
std::string random_bytes(std::mt19937_64& random) {
  const std::vector<std::string> pieces{"a",    "é",    "€",   "😀",  "\xE2\x82", "\xF0\x9F",
                                        "\x80", "\xFF", "END", "EN", "\n"};
  std::string text;
  const size_t count = random() % 12;
  for (size_t i = 0; i < count; ++i) {
    if (random() % 3 == 0) {
      text += static_cast<char>(random() % 256);
    } else {
      text += pieces[random() % pieces.size()];
    }
  }
  return text;
}

TEST(TextFollower, GivesOutWholeCharactersWhateverTheBytes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = random_bytes(random);
    const std::vector<std::string> parts = parts_of(bytes, {});
    for (const std::string& part : parts) {
      ASSERT_EQ(well_formed_length(part), part.size()) << "a part of a character, in " << bytes;
    }
    ASSERT_EQ(joined(parts), repaired_utf8(bytes));
  }
}

TEST(TextFollower, EndsBeforeTheFirstTextToStopAt) {
  std::mt19937_64 random(2);
  const std::vector<std::string> stops{"END", "é€", "a\n", "EEN"};
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = random_bytes(random);
    const std::string whole = repaired_utf8(bytes);
    size_t end = std::string::npos;
    for (const auto& stop : stops) end = std::min(end, whole.find(stop));
    bool is_stopped = false;
    const std::vector<std::string> parts = parts_of(bytes, stops, &is_stopped);
    ASSERT_EQ(joined(parts), whole.substr(0, end)) << bytes;
    ASSERT_EQ(is_stopped, end != std::string::npos);
    for (const std::string& part : parts) ASSERT_EQ(well_formed_length(part), part.size());
  }
}

TEST(TextFollower, GivesOutAtOnceWhatIsCertain) {
  TextFollower follower(kBytes, {"END"}, {});
  EXPECT_EQ(follower.add('x'), "x");
  EXPECT_EQ(follower.add('E'), "");
  EXPECT_EQ(follower.add('N'), "");
  EXPECT_EQ(follower.add('E'), "EN");
  EXPECT_EQ(follower.finish(), "E");
}

TEST(TextFollower, GoesOnFromAPrompt) {
  const std::vector<int32_t> prompt{'a', 0xC3};  // It ends within a character.
  TextFollower follower(kBytes, {}, prompt);
  EXPECT_EQ(follower.add(0xA9), "é");
}

}  // namespace
}  // namespace phalanx
