// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/byte_alphabet.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(ByteAlphabet, ShowsEveryByte) {
  EXPECT_EQ(visible_bytes(" a\n\xC3\xA9"), "\u0120a\u010A\u00C3\u00A9");
  EXPECT_EQ(visible_bytes("\x7F\xA0\xAD"), "\u0121\u0142\u0143");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(bytes_of_visible(visible_bytes(all)), all);
}

TEST(ByteAlphabet, HoldsNothingElse) {
  for (const char* text :
       {" ", "\n", "\u00A0", "\u00AD", "\u0144", "\u20AC", "\xC4", "a\U0001F600"}) {
    EXPECT_EQ(bytes_of_visible(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace phalanx
