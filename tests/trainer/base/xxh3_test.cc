// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/xxh3.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace phalanx {
namespace {

std::string expected64(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string expected128(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// Around the lengths at which XXH3 changes its way.
TEST(Xxh3, IsThatOfAllWhateverTheParts) {
  for (const size_t size : {0, 1, 3, 16, 17, 128, 129, 240, 241, 255, 256, 257, 1024, 5000}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(i * 37 + 11);
    EXPECT_EQ(xxh3_digits64(text), expected64(text)) << size;
    EXPECT_EQ(xxh3_digits128(text), expected128(text)) << size;
    for (const size_t part : {1, 7, 300}) {
      Xxh3 hash;
      for (std::string_view rest = text; !rest.empty();) {
        const size_t count = std::min(part, rest.size());
        hash.add(rest.substr(0, count));
        rest.remove_prefix(count);
      }
      EXPECT_EQ(hash.digits64(), expected64(text)) << size << " in parts of " << part;
      EXPECT_EQ(hash.digits128(), expected128(text)) << size << " in parts of " << part;
    }
  }
}

TEST(Xxh3, IsTheOneOfItsAuthors) {
  EXPECT_EQ(xxh3_digits64(""), "2d06800538d394c2");
  EXPECT_EQ(xxh3_digits128(""), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace phalanx
