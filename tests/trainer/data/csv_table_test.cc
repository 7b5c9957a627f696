// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/data/text_folder.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
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

TEST_F(Csv, KnowsTheLineOfEachRow) {
  const CsvTable table = read("a,b\n1,2\n\n\"3\",4\n");
  EXPECT_THAT(table.place(0), EndsWith("t.csv', line 2"));
  EXPECT_THAT(table.place(1), EndsWith("t.csv', line 4"));
}

TEST_F(Csv, FindsColumnsByTheirNames) {
  const std::vector<std::string> names{"x", "y"};
  const std::vector<std::string> others{"label"};
  EXPECT_THAT(columns_of(read("label,y,x\n1,2,3\n"), "task.path", names, others),
              ElementsAre(2, 1));
  EXPECT_THAT(columns_of(read("x,y\n1,2\n"), "task.path", names, others), ElementsAre(0, 1));
  const std::vector<std::vector<std::string>> headings{
      {"x", "z"}, {"x", "label"}, {"x", "y", "z"}, {"x"}};
  for (const auto& heading : headings) {
    const CsvTable table{.columns = heading, .values = {}, .path = "t.csv", .lines = {}};
    try {
      columns_of(table, "task.path", names, others);
      ADD_FAILURE() << heading.size();
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("'t.csv' must have the columns x, y (and may have label), "
                            "in any order; it has x"));
    }
  }
}

TEST_F(Csv, ReadsAHeadingAlone) {
  TextFolder folder;
  EXPECT_THAT(read_csv_heading("task.path", folder.write("h.csv", "a, b \nno,number\n")),
              ElementsAre("a", "b"));
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
