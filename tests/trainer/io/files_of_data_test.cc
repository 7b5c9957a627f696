// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/files_of_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

TEST(FilesOfData, AreToldByPathSizeAndEnds) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  const auto told_of = [&](const std::string& text) {
    std::ofstream(path) << text;
    return files_of_data();
  };
  note_files_of_data({path});
  const std::string told = told_of("12345");
  EXPECT_THAT(told, HasSubstr("'" + path.string() + "', 5 bytes, checksum of its ends "));
  EXPECT_EQ(told_of("12345"), told);
  EXPECT_NE(told_of("12346"), told);
  EXPECT_THAT(told_of(""), HasSubstr("', 0 bytes, "));
  const std::string long_text(3 << 20, 'x');
  const std::string told_of_long = told_of(long_text);
  EXPECT_NE(told_of(long_text.substr(1) + "y"), told_of_long);
  EXPECT_NE(told_of("y" + long_text.substr(1)), told_of_long);
  std::filesystem::remove(path);
  EXPECT_THAT(files_of_data(), HasSubstr("No such file"));
}

TEST(FilesOfData, StandInTheOrderInWhichTheyWereNoted) {
  note_files_of_data({"/nothing/b", "/nothing/a"});
  const std::string told = files_of_data();
  EXPECT_LT(told.find("/nothing/b"), told.find("/nothing/a"));
}

}  // namespace
}  // namespace phalanx
