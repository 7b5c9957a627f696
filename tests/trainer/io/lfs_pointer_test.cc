// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/lfs_pointer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;
using testing::ThrowsMessage;

const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 548105171\n";

TEST(LfsPointer, IsNamedWithTheSizeOfItsFileAndWhatToDo) {
  EXPECT_THAT(lfs_pointer_problem(kPointer),
              Optional(std::string("is a Git LFS pointer, not the file itself, which has 548 MB: "
                                   "run `git lfs pull` in its folder")));
}

TEST(LfsPointer, MayBeOfItsFirstYearOrHaveExtensions) {
  EXPECT_THAT(lfs_pointer_problem("version https://hawser.github.com/spec/v1\nsize 7\n"),
              Optional(HasSubstr("which has 7 B")));
  EXPECT_THAT(lfs_pointer_problem("version https://git-lfs.github.com/spec/v1\n"
                                  "ext-0-foo sha256:00\noid sha256:00\nsize 12\n"),
              Optional(HasSubstr("which has 12 B")));
}

TEST(LfsPointer, WithoutASizeIsOneToo) {
  for (const char* rest : {"\n", "\nsize x\n", "\nsize 99999999999999999999999\n"}) {
    EXPECT_THAT(
        lfs_pointer_problem(std::string("version https://git-lfs.github.com/spec/v1") + rest),
        Optional(HasSubstr("not the file itself: run")));
  }
}

TEST(LfsPointer, IsNoTextThatBeginsOtherwiseOrIsLong) {
  EXPECT_EQ(lfs_pointer_problem(""), std::nullopt);
  EXPECT_EQ(lfs_pointer_problem("version https://example.com/spec/v1\nsize 7\n"), std::nullopt);
  EXPECT_EQ(lfs_pointer_problem(" " + kPointer), std::nullopt);
  EXPECT_EQ(lfs_pointer_problem(kPointer + std::string(1024, 'x')), std::nullopt);
}

TEST(LfsPointer, IsRefusedByItsPath) {
  const TemporaryFolder folder;
  spill(folder / "model.safetensors", kPointer);
  spill(folder / "empty", "");
  const auto is_told = ThrowsMessage<UserError>(
      AllOf(HasSubstr("model.safetensors' is a Git LFS pointer"), HasSubstr("548 MB")));
  const File file(folder / "model.safetensors", O_RDONLY);
  EXPECT_THAT([&] { refuse_lfs_pointer(file); }, is_told);
  EXPECT_THAT([&] { read_text(folder / "model.safetensors"); }, is_told);
  EXPECT_NO_THROW(refuse_lfs_pointer(File(folder / "empty", O_RDONLY)));
  EXPECT_EQ(read_text(folder / "empty"), "");
}

}  // namespace
}  // namespace phalanx
