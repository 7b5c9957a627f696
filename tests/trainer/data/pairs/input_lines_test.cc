// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/input_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/text_folder.h"
#include "trainer/api/broken_sample.h"

namespace phalanx {
namespace {

using testing::HasSubstr;

TEST(InputLines, AreLinesAndTheObjectsOfArrays) {
  const TextFolder folder;
  const InputLines lines({folder.write("a.txt", "one\ntwo\n"),
                          folder.write("b.json", "[{\"n\":\n 1}, {\"n\": 2}, 3]"),
                          folder.write("c.json", "{\"n\": 3}")});
  ASSERT_EQ(lines.size(), 6);
  EXPECT_EQ(lines.text(1), "two");
  EXPECT_FALSE(lines.is_json(1));
  EXPECT_TRUE(lines.is_json(2));
  EXPECT_EQ(lines.object(2).at("n"), 1);
  EXPECT_EQ(lines.object(3).at("n"), 2);
  EXPECT_FALSE(lines.is_json(5)) << "no array";
  try {
    (void)lines.object(4);
    ADD_FAILURE();
  } catch (const BrokenSampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("b.json', object 3: the element is no JSON object"));
  }
}

}  // namespace
}  // namespace phalanx
