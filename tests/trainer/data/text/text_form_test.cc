// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/text_form.h"

#include <gtest/gtest.h>

#include "tests/trainer/data/text/packed.h"
#include "tests/trainer/data/text_folder.h"

namespace phalanx {
namespace {

TEST(TextForm, OfLinesGoesByTheName) {
  for (const char* name : {"a.jsonl", "x/a.jsonl.gz", "a.b.jsonl.zst"}) {
    EXPECT_TRUE(is_json_lines(name)) << name;
    EXPECT_EQ(form_of(name), TextForm::json_lines);
  }
  for (const char* name : {"a.txt", "jsonl", "a.json", "a.jsonl.txt"}) {
    EXPECT_FALSE(is_json_lines(name)) << name;
  }
}

TEST(TextForm, OfAnArrayGoesByNameAndBeginning) {
  const TextFolder folder;
  for (const char* text : {"[{\"a\": 1}]", " \n[\n\t{", "[]"}) {
    EXPECT_EQ(form_of(folder.write("a.json", text)), TextForm::json_array) << text;
    EXPECT_EQ(form_of(folder.write("a.json.gz", gzip(text))), TextForm::json_array) << text;
    EXPECT_EQ(form_of(folder.write("a.json.zst", zstd(text))), TextForm::json_array) << text;
    EXPECT_EQ(form_of(folder.write("a.txt", text)), TextForm::plain) << text;
  }
  for (const char* text : {"", "{}", "[1]", "[[{}]]", "[", "x[{}]"}) {
    EXPECT_EQ(form_of(folder.write("a.json", text)), TextForm::plain) << text;
  }
}

}  // namespace
}  // namespace phalanx
