// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/sha256.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kOfAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
// A million times 'a'; all three are examples of FIPS 180-4's.
constexpr const char* kOfAMillion =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

// Nine million times 'a', more than is read at a time: of sha256sum.
constexpr const char* kOfNineMillion =
    "6a04ab516c166c874f1ed30eecfe2c600147179bb8b192fa9ad6320bff925dc6";

TEST(Sha256, IsWhatTheStandardSays) {
  const TemporaryFolder folder;
  const auto digest = [&](const std::string& bytes) {
    spill(folder / "a", bytes);
    return sha256_of(folder / "a");
  };
  EXPECT_EQ(digest(""), kOfNothing);
  EXPECT_EQ(digest("abc"), kOfAbc);
  EXPECT_EQ(digest(std::string(1'000'000, 'a')), kOfAMillion);
  EXPECT_EQ(digest(std::string(9'000'000, 'a')), kOfNineMillion);
  EXPECT_THROW(sha256_of(folder / "b"), IoError);
}

TEST(Sha256, SumsAreReadAsTheyAreWritten) {
  const std::string text = format_sha256_sums({{"b c", kOfAbc}, {"a", kOfNothing}});
  EXPECT_EQ(text, std::string(kOfNothing) + "  a\n" + kOfAbc + "  b c\n");
  EXPECT_THAT(parse_sha256_sums(text), ElementsAre(Pair("a", kOfNothing), Pair("b c", kOfAbc)));
  EXPECT_THAT(parse_sha256_sums(""), IsEmpty());
  for (const std::string& wrong :
       {std::string("x"), std::string(kOfAbc), std::string(kOfAbc) + "\n",
        std::string(kOfAbc) + "  \n", std::string(kOfAbc) + "  a", std::string(kOfAbc) + " a\n",
        "BA" + std::string(kOfAbc).substr(2) + "  a\n"}) {
    EXPECT_THROW(parse_sha256_sums(wrong), CheckpointError) << wrong;
  }
}

}  // namespace
}  // namespace phalanx
