// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/print.h"

namespace phalanx::config {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Compose : public testing::Test {
 protected:
  void file(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    spill(folder_ / name, text);
  }
  Node tree_of(const std::vector<std::string>& names) {
    std::vector<fs::path> files;
    for (const std::string& name : names) files.push_back(folder_ / name);
    return read_files(files, diagnostics_);
  }
  std::string read(const std::vector<std::string>& names) {
    const Node tree = tree_of(names);
    if (diagnostics_.empty()) return print_inline(tree);
    std::string text = diagnostics_.text();
    // Without the folder, which has another name in each test.
    for (std::size_t at = text.find(folder_.path().string()); at != std::string::npos;
         at = text.find(folder_.path().string())) {
      text.erase(at, folder_.path().string().size() + 1);
    }
    return text;
  }

  TemporaryFolder folder_;
  Diagnostics diagnostics_;
};

TEST_F(Compose, LaysEachFileOverThoseBeforeIt) {
  file("a.yaml", "{x: 1, m: {p: 1, q: [1, 2]}, o: {name: sgd, lr: 1}}");
  file("b.yaml", "{x: 2, m: {q: [3], r: null}}");
  file("c.yaml", "o: adamw");
  EXPECT_EQ(read({"a.yaml", "b.yaml", "c.yaml"}),
            "{x: 2, m: {p: 1, q: [3], r: null}, o: {name: adamw, lr: 1}}");
}

TEST_F(Compose, ReadsWhatAFileIncludesFirst) {
  file("base.yaml", "{x: 1, m: {p: 1}}");
  file("sub/mine.yaml", "include: ../base.yaml\nm: {q: 2}\nx: 3");
  EXPECT_EQ(read({"sub/mine.yaml"}), "{x: 3, m: {p: 1, q: 2}}");
}

TEST_F(Compose, IncludesSeveralFromLeftToRight) {
  file("a.yaml", "{x: a, w: a}");
  file("b.yaml", "include: c.yaml\nx: b");
  file("c.yaml", "{x: c, w: c, z: c}");
  file("top.yaml", "include: [a.yaml, b.yaml]\nv: 1");
  EXPECT_EQ(read({"top.yaml"}), "{x: b, w: c, z: c, v: 1}");
}

TEST_F(Compose, MayIncludeOneFileTwice) {
  file("base.yaml", "x: 1");
  file("a.yaml", "include: base.yaml\na: 1");
  file("b.yaml", "include: base.yaml\nb: 1");
  EXPECT_EQ(read({"a.yaml", "b.yaml"}), "{x: 1, a: 1, b: 1}");
}

TEST_F(Compose, KeepsWhereValuesCameFrom) {
  file("base.yaml", "x: 1");
  file("mine.yaml", "include: base.yaml\ny: 2");
  const Node tree = tree_of({"mine.yaml"});
  EXPECT_EQ(tree.find("x")->origin.text(), (folder_ / "base.yaml").string() + ":1");
  EXPECT_EQ(tree.find("y")->origin.text(), (folder_ / "mine.yaml").string() + ":2");
}

TEST_F(Compose, GroupsByIncludeAsByPlace) {
  file("a.yaml", "{x: {p: 1, q: [1]}, o: {name: sgd, lr: 1}}");
  file("b.yaml", "{x: {q: [2], r: 1}, o: adamw}");
  file("c.yaml", "{x: {r: 2}, o: {wd: 3}}");
  file("bc.yaml", "include: [b.yaml, c.yaml]\nz: 1");
  file("ab.yaml", "include: [a.yaml, b.yaml]");
  file("z.yaml", "z: 1");
  EXPECT_EQ(read({"ab.yaml", "c.yaml", "z.yaml"}), read({"a.yaml", "bc.yaml"}));
}

TEST_F(Compose, NamesACircle) {
  file("a.yaml", "include: sub/b.yaml");
  file("sub/b.yaml", "x: 1\ninclude: [../c.yaml]");
  file("c.yaml", "include: a.yaml");
  EXPECT_EQ(read({"a.yaml"}),
            "c.yaml:1:10: include: this goes in a circle: a.yaml includes sub/b.yaml includes "
            "c.yaml includes a.yaml\n    1 | include: a.yaml\n      |          ^\n");
  diagnostics_ = {};
  file("own.yaml", "include: own.yaml");
  EXPECT_THAT(read({"own.yaml"}), HasSubstr("circle: own.yaml includes own.yaml"));
}

TEST_F(Compose, SaysWhatItCannotInclude) {
  file("a.yaml", "include: [gone.yaml, 7]\nx: 1");
  EXPECT_THAT(read({"a.yaml"}), HasSubstr("a.yaml:1:11: include: there is no file 'gone.yaml'"));
  diagnostics_ = {};
  fs::create_directory(folder_ / "sub");
  file("a.yaml", "include: sub");
  EXPECT_THAT(read({"a.yaml"}), HasSubstr("a.yaml:1:10: include: 'sub' is a folder"));
  for (const char* wrong : {"{a: 1}", "''", "null", "[[x]]"}) {
    diagnostics_ = {};
    file("b.yaml", std::string("x: 1\ninclude: ") + wrong);
    EXPECT_THAT(read({"b.yaml"}), HasSubstr("include: expected the path of a config file"));
  }
  diagnostics_ = {};
  file("b.yaml", "include: ${oc.env:HOME}/a.yaml");
  EXPECT_THAT(read({"b.yaml"}), HasSubstr("b.yaml:1:10: include: ${...} is not filled in here"));
}

TEST_F(Compose, SaysWhoIncludesAFileThatIsOfNoUse) {
  file("a.yaml", "x: 1\ninclude: b.yaml");
  file("b.yaml", "include: sub/c.yaml");
  file("sub/c.yaml", "# nothing yet");
  EXPECT_THAT([this] { read({"a.yaml"}); },
              testing::ThrowsMessage<UserError>(testing::EndsWith(
                  "sub/c.yaml: the file is empty; a config is a map of fields, such as name: ... "
                  "(included by " +
                  (folder_ / "b.yaml:1").string() + ")")));
}

TEST_F(Compose, ReportsAMistakeOnceHoweverTheFileIsNamed) {
  file("wrong.yaml", "x: 1\nx: 2");
  file("a.yaml", "include: ./sub/../wrong.yaml");
  file("sub/b.yaml", "include: ../wrong.yaml");
  fs::create_symlink("wrong.yaml", folder_ / "link.yaml");
  read({"a.yaml", "sub/b.yaml", "wrong.yaml", "./wrong.yaml", "link.yaml"});
  EXPECT_EQ(diagnostics_.all().size(), 1);
}

TEST_F(Compose, LeavesASectionAloneInWhichNothingIsWritten) {
  file("a.yaml", "{m: {p: 1}, x: 1}");
  file("b.yaml", "m:\nx:");
  EXPECT_EQ(read({"a.yaml", "b.yaml"}), "{m: {p: 1}, x: null}");
}

TEST_F(Compose, FollowsLinksAsTheSystemDoes) {
  file("base.yaml", "x: wrong");
  file("real/base.yaml", "x: right");
  file("real/sub/any.yaml", "y: 1");
  fs::create_directory_symlink(folder_ / "real/sub", folder_ / "link");
  file("top.yaml", "include: link/../base.yaml");
  EXPECT_EQ(read({"top.yaml"}), "{x: right}");
}

TEST_F(Compose, NamesTheFileThatAValueWasReplacedIn) {
  file("a.yaml", "x: 1\ny: 2");
  file("b.yaml", "\n\nx: null");
  const Node tree = tree_of({"a.yaml", "b.yaml"});
  EXPECT_EQ(tree.entries[0].key_origin.text(), (folder_ / "b.yaml").string() + ":3");
}

TEST_F(Compose, LaysManyKeysFast) {
  std::string keys;
  for (int i = 0; i < 60000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  file("a.yaml", keys);
  file("b.yaml", "include: a.yaml\n" + keys);
  EXPECT_EQ(tree_of({"b.yaml"}).entries.size(), 60000);
}

TEST_F(Compose, BoundsHowOftenFilesIncludeOthers) {
  for (int i = 0; i < 40; ++i) {
    const std::string next = std::to_string(i + 1) + ".yaml";
    file(std::to_string(i) + ".yaml", "include: [" + next + ", " + next + "]");
  }
  file("40.yaml", "x: 1");
  EXPECT_THAT(
      [this] {
        read({"0.yaml"});
        diagnostics_.throw_if_any();
      },
      testing::ThrowsMessage<UserError>(HasSubstr("more than 256 files")));
  EXPECT_EQ(diagnostics_.all().size(), 1);  // told once
}

}  // namespace
}  // namespace phalanx::config
