// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Csv : public testing::Test {
 protected:
  CsvTable read(const std::string& text) {
    return read_csv_table("task.path", folder_.write("t.csv", text));
  }

  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const UserError& error) {
      return error.what();
    }
    return "taken";
  }

 private:
  TextFolder folder_;
};

TEST_F(Csv, ReadsQuotesLineEndsAndAByteOrderMark) {
  const CsvTable table = read(
      "\xEF\xBB\xBF"
      "a,\"b \"\"x\"\"\"\r\n1, 2 \r\n\n\"3\",4");
  EXPECT_THAT(table.columns, ElementsAre("a", "b \"x\""));
  EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(table.at(1, 0), 3);
  EXPECT_EQ(column_of(table, "task.label", "b \"x\""), 1);
  EXPECT_EQ(table.fingerprint(), read("a,\"b \"\"x\"\"\"\n1,2\n3,4\n").fingerprint());
  EXPECT_NE(table.fingerprint(), read("a,b\n1,2\n3,4\n").fingerprint());
}

TEST_F(Csv, RefusesARowWithoutALabelByItsLine) {
  EXPECT_THAT(refusal("x,label\n1,0\n2,\n"),
              HasSubstr("t.csv', line 3: the column 'label' is empty"));
  EXPECT_THAT(refusal("x,label\n1,0\n2\n"),
              HasSubstr("t.csv', line 3: 1 cell, but the heading has 2"));
  EXPECT_THAT(refusal("\"x\ny\",label\n1,0\n\n2,\n"), HasSubstr("line 5: the column 'label'"));
}

TEST_F(Csv, RefusesWhatIsNoTableOfNumbers) {
  EXPECT_THAT(refusal(""), HasSubstr("line 1: the file is empty"));
  EXPECT_THAT(refusal("a,b\n"), HasSubstr("no row follows the heading"));
  EXPECT_THAT(refusal("a,a\n1,2\n"), HasSubstr("two columns are 'a'"));
  EXPECT_THAT(refusal("a, \n1,2\n"), HasSubstr("column 2 has no name"));
  for (const std::string wrong : {"x", "1x", "nan", "inf", "1 2", "0x"}) {
    EXPECT_THAT(refusal("a,b\n1," + wrong + "\n"),
                HasSubstr("line 2: the column 'b' is no number: '" + wrong + "'"));
  }
  EXPECT_THAT(refusal("a,b\n1,\"2\n"), HasSubstr("line 2: a quote is not closed"));
  EXPECT_THAT(refusal("a,b\n1,\"2\"3\n"), HasSubstr("goes on behind its closing quote"));
  EXPECT_THROW(read_csv_table("task.path", "/no/such.csv"), UserError);
  EXPECT_THROW(column_of(read("a\n1\n"), "task.label", "b"), UserError);
}

}  // namespace
}  // namespace phalanx
