// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/input_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/text_folder.h"
#include "trainer/api/broken_sample.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(InputLines, AreLinesAndTheObjectsOfArrays) {
  const TextFolder folder;
  const InputLines lines({folder.write("a.txt", "one\ntwo\n"),
                          folder.write("b.json", "[{\"n\":\n 1}, {\"n\": 2}, 3]")});
  ASSERT_EQ(lines.size(), 5);
  EXPECT_EQ(lines.text(1), "two");
  EXPECT_FALSE(lines.is_json(1));
  EXPECT_TRUE(lines.is_json(2));
  EXPECT_EQ(lines.object(2).at("n"), 1);
  EXPECT_EQ(lines.object(3).at("n"), 2);
  try {
    (void)lines.object(4);
    ADD_FAILURE();
  } catch (const BrokenSampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("b.json', object 3: the element is no JSON object"));
  }
}

std::string error_of(const std::filesystem::path& file, const AnyBytes& any_bytes = {}) {
  try {
    const InputLines lines({file}, any_bytes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

// What is no input would get a prediction all the same.
TEST(InputLines, RefuseFilesWhoseLinesAreNoInputs) {
  const TextFolder folder;
  const std::string table = "question,answer\n1 + 1,2\n";
  for (const char* name : {"a.csv", "a.tsv"}) {
    EXPECT_THAT(error_of(folder.write(name, table)),
                AllOf(HasSubstr(std::string(name) + "' is a table"), HasSubstr("NAME.jsonl")));
  }
  EXPECT_EQ(error_of(folder.write("a.txt", table)), "none") << "which the message offers";
  EXPECT_THAT(error_of(folder.write("a.json", "{\"n\": 1}\n{\"n\": 2}\n")),
              AllOf(HasSubstr("a.json' is no JSON array"), HasSubstr(".jsonl if each line")));
  const auto parquet = folder.write("a.parquet", std::string("PAR1\x15\x04\nPAR1", 11));
  EXPECT_THAT(error_of(parquet), HasSubstr("a.parquet' is a Parquet file, not text"));
  EXPECT_THAT(error_of(parquet, {.allowed_by = "task.data.any_bytes=true"}),
              HasSubstr("; task.data.any_bytes=true reads any bytes as they are"));
  EXPECT_EQ(error_of(parquet, {.are_allowed = true}), "none");
}

}  // namespace
}  // namespace phalanx
