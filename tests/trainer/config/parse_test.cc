// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/parse.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/trainer/io/without_privileges.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/print.h"

namespace phalanx::config {
namespace {

Node parse(const std::string& text) {
  Diagnostics diagnostics;
  Node node = parse_yaml(text, "a.yaml", diagnostics);
  diagnostics.throw_if_any();
  return node;
}

TEST(ParseYaml, KeepsOrderQuotesAndPlaces) {
  const Node tree = parse("b: 1\na:\n  - 'x'\n  - {y: \"2\"}\n");
  ASSERT_EQ(tree.entries.size(), 2u);
  EXPECT_EQ(tree.entries[0].key, "b");
  EXPECT_EQ(tree.entries[1].key, "a");
  EXPECT_EQ(tree.entries[1].key_origin.line, 2);
  EXPECT_EQ(tree.entries[1].key_origin.column, 1);
  const Node& list = *tree.find("a");
  EXPECT_EQ(list.items[0].type, ScalarType::string);
  EXPECT_EQ(list.items[0].origin.line, 3);
  EXPECT_EQ(list.items[0].origin.column, 5);
  EXPECT_EQ(list.items[1].find("y")->type, ScalarType::string);
  EXPECT_EQ(tree.find("b")->type, ScalarType::plain);
  EXPECT_EQ(tree.find("b")->origin.text(), "a.yaml:1");
}

TEST(ParseYaml, CountsColumnsInCharacters) {
  const Node tree = parse("{ü: 'é', z: 1}\n");
  EXPECT_EQ(tree.find("z")->origin.column, 13);
}

TEST(ParseYaml, AcceptsAByteOrderMarkAndOtherLineEnds) {
  const Node tree = parse(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\rc: 3\n");
  EXPECT_EQ(tree.find("a")->origin.column, 4);
  EXPECT_EQ(tree.find("b")->text, "2");
  EXPECT_EQ(tree.find("c")->origin.line, 3);
}

TEST(ParseYaml, TakesEmptyValuesForNullAtTheirKey) {
  const Node tree = parse("a:\nb: ~\nc: null\nnext: 1\n");
  EXPECT_TRUE(tree.find("a")->is_null());
  EXPECT_EQ(tree.find("a")->origin.line, 1);
  EXPECT_EQ(tree.find("b")->origin.column, 4);
  EXPECT_TRUE(tree.find("c")->is_null());
}

TEST(ParseYaml, ReadsInterpolationsInFlowWithoutQuotes) {
  const Node tree = parse("{a: ${x.y}, b: [${oc.env:V,1}, ${z}], c: 'q, ${w}'}\n");
  EXPECT_EQ(tree.find("a")->text, "${x.y}");
  EXPECT_EQ(tree.find("b")->items[0].text, "${oc.env:V,1}");
  EXPECT_EQ(tree.find("b")->items[1].text, "${z}");
  EXPECT_EQ(tree.find("c")->text, "q, ${w}");
}

TEST(ParseYaml, LeavesDollarsInQuotesToYaml) {
  const Node tree = parse("{a: \"${\", b: \"}, \\u0001\"}\n");
  EXPECT_EQ(tree.find("a")->text, "${");
  EXPECT_EQ(tree.find("b")->text, "}, \x01");
}

TEST(ParseYaml, ReadsEscapesAsUtf8) {
  const Node tree = parse("a: \"\\N\\_\\L\\xe9 \u00e9\"\n");
  EXPECT_EQ(tree.find("a")->text, "\u0085\u00a0\u2028\u00e9 \u00e9");
}

TEST(ParseYaml, CollectsWhatItCanReadOver) {
  Diagnostics diagnostics;
  const Node tree = parse_yaml("a: 1\na: 2\nb: !!int 3\n<<: {c: 1}\n? [x]\n: 4\nd: &n 5\ne: *n\n",
                               "a.yaml", diagnostics);
  EXPECT_EQ(diagnostics.all().size(), 6u) << diagnostics.text();
  EXPECT_EQ(tree.find("a")->text, "1");
  EXPECT_EQ(tree.find("d")->text, "5");
  EXPECT_EQ(tree.find("<<"), nullptr);
}

class ReadFile : public testing::Test {
 protected:
  ReadFile() {
    std::string name = testing::TempDir() + "/configXXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~ReadFile() override { std::filesystem::remove_all(folder_); }

  std::string error_of(const std::filesystem::path& path) {
    Diagnostics diagnostics;
    try {
      read_file(path, diagnostics);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  std::filesystem::path file(const std::string& text) {
    const std::filesystem::path path = folder_ / "a.yaml";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(ReadFile, ReadsAMap) {
  Diagnostics diagnostics;
  EXPECT_EQ(read_file(file("a: 1\n"), diagnostics).find("a")->text, "1");
}

TEST_F(ReadFile, SaysWhyAFileCannotBeRead) {
  const std::string none = folder_ / "none.yaml";
  EXPECT_EQ(error_of(none), none + ": there is no such file");
  EXPECT_EQ(error_of(folder_), folder_.string() + ": this is a folder; name the config file in it");
  const std::string below = file("a: 1\n") / "b";
  EXPECT_EQ(error_of(below), below + ": cannot be read: Not a directory");
  const std::string loop = folder_ / "loop";
  std::filesystem::create_symlink("loop", loop);
  EXPECT_EQ(error_of(loop), loop + ": cannot be read: Too many levels of symbolic links");
}

TEST_F(ReadFile, SaysThatAFileIsNotReadable) {
  const std::string path = file("a: 1\n");
  chmod(path.c_str(), 0);
  const WithoutPrivileges plain_user;
  EXPECT_EQ(error_of(path), path + ": cannot be read: Permission denied");
}

TEST_F(ReadFile, RefusesWhatIsNoConfig) {
  const std::string path = file("");
  const std::string empty = path +
                            ": the file is empty; a config is a map of fields, such as "
                            "name: ...";
  EXPECT_EQ(error_of(file("")), empty);
  EXPECT_EQ(error_of(file("# only a comment\n")), empty);
  EXPECT_EQ(error_of(file("---\n")), empty);
  EXPECT_EQ(error_of(file(std::string(kMaxConfigBytes + 1, '#'))),
            path + ": is larger than 1 MiB, too large for a config");
  EXPECT_EQ(error_of(file("- a\n")),
            path +
                ":1:1: the top level is no map; a config is a map of fields, such as name: ...\n"
                "    1 | - a\n"
                "      | ^");
  EXPECT_EQ(error_of(file("a: \xFF\n")).substr(path.size()),
            ":1:4: the text is not UTF-8 here\n    1 | a: \uFFFD\n      |    ^");
  EXPECT_EQ(error_of(file("\u65e5: \xFF\n")).substr(path.size()),
            ":1:4: the text is not UTF-8 here\n    1 | \u65e5: \uFFFD\n      |     ^")
      << "the caret stands below a wide character's neighbour";
  EXPECT_EQ(error_of(file(std::string("a: \0\n", 5))).substr(path.size()),
            ":1:4: a control character (0x00) is not allowed\n    1 | a:  \n      |    ^");
}

}  // namespace
}  // namespace phalanx::config
