// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Files = std::vector<std::filesystem::path>;

std::string error_of(const std::filesystem::path& pattern, const Files& files) {
  try {
    require_all_shards("data.files", pattern, files);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RequireAllShards, NamesTheFirstThatIsMissing) {
  const Files files{"x/train_000000.bin", "x/train_000001.bin", "x/train_000004.bin"};
  EXPECT_THAT(error_of("x/*.bin", files),
              AllOf(HasSubstr("data.files: 'x/train_000002.bin' is missing"),
                    HasSubstr("'x/train_000004.bin' is there")));
  const TextFolder folder;
  EXPECT_THAT(
      error_of(folder.path(), {folder.path() / "a_000001.idx", folder.path() / "a_000003.idx"}),
      HasSubstr("a_000002.idx' is missing"));
  EXPECT_THAT(error_of("x*", {"x1/a_000001.bin", "x1/a_000003.bin"}), HasSubstr("x1/a_000002.bin"));
}

TEST(RequireAllShards, KnowsFirstAndLastByTheirDescription) {
  const TextFolder folder;
  folder.write("tokens.json", R"({"files": {"train": 3, "val": 1}})");
  const auto pattern = folder.path() / "train_*.bin";
  const auto file = [&](int number) {
    return folder.path() / ("train_00000" + std::to_string(number) + ".bin");
  };
  EXPECT_THAT(error_of(pattern, {file(1), file(2)}), HasSubstr("train_000000.bin' is missing"));
  EXPECT_THAT(error_of(pattern, {file(0), file(1)}), HasSubstr("train_000002.bin' is missing"));
  EXPECT_EQ(error_of(pattern, {file(0), file(1), file(2)}), "no error");
  EXPECT_EQ(error_of(folder.path() / "train_00000[01].bin", {file(0), file(1)}), "no error");
  EXPECT_EQ(error_of(folder.write("train_000001.bin", ""), {file(1)}), "no error");
  for (const char* broken : {"", "{", R"({"files": 3})", R"({"files": {"train": "x"}})"}) {
    folder.write("tokens.json", broken);
    EXPECT_EQ(error_of(pattern, {file(1)}), "no error");
  }
}

TEST(RequireAllShards, TakesWhatIsWhole) {
  for (const Files& files : {
           Files{"a_000003.bin", "a_000004.bin", "b_000001.bin"},  // From any number on.
           Files{"1/a_000000.bin", "2/a_000005.bin"},              // Each folder by itself.
           Files{"a_000000.bin", "a_000000.idx", "a_000001.bin"},  // Each kind by itself.
           Files{"a_000000.txt", "a_000005.txt", "notes.bin"},     // No tokens.
           Files{"a_0.bin", "a_5.bin", "a000000.bin", "a000005.bin", "000000.bin", "000005.bin"},
       }) {
    EXPECT_EQ(error_of("*", files), "no error");
  }
}

TEST(RequireAllShards, TakesAPatternThatLeavesSomeOut) {
  EXPECT_EQ(error_of("a_*0.bin", {"a_000000.bin", "a_000010.bin"}), "no error");
  EXPECT_EQ(error_of("a_00000[02].bin", {"a_000000.bin", "a_000002.bin"}), "no error");
}

}  // namespace
}  // namespace phalanx
