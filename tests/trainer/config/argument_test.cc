// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/argument.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/trainer/config/example.h"
#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"

namespace phalanx::config {
namespace {

/// What a shell makes of words: each on a line of its own.
std::string by_shell(const std::string& words) {
  const std::unique_ptr<FILE, int (*)(FILE*)> shell(popen(("printf '%s\\n' " + words).c_str(), "r"),
                                                    pclose);
  std::string output;
  for (int c = std::fgetc(shell.get()); c != EOF; c = std::fgetc(shell.get())) {
    output += static_cast<char>(c);
  }
  return output;
}

/// What the key holds once a shell and the program have read the argument.
std::string read_back(const std::string& text) {
  std::string line = by_shell(argument("key", text));
  EXPECT_FALSE(line.empty());
  line.pop_back();
  Diagnostics diagnostics;
  Node tree = Node::map();
  apply_override(tree, line, diagnostics);
  const KnownValues none;
  Interpolator(tree, diagnostics, none).resolve_all();
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  const Node* value = tree.find("key");
  return value == nullptr || !value->is_scalar() ? "(no text)" : value->text;
}

TEST(Argument, StaysAsItIsWhereNothingHasAMeaning) {
  EXPECT_EQ(argument("exp_dir", "runs/tiny.lr=1e-3/run_0"), "exp_dir=runs/tiny.lr=1e-3/run_0");
  EXPECT_EQ(argument("exp_dir", "/data/my_runs/a+b"), "exp_dir=/data/my_runs/a+b");
}

TEST(Argument, IsQuotedForOverrideAndShellWhereSomethingHas) {
  EXPECT_EQ(argument("exp_dir", "runs/a,b"), "'exp_dir=\"runs/a,b\"'");
}

TEST(Argument, ReadsBackWhateverTheTextIs) {
  for (const std::string text : {"runs/a/run_0",
                                 "a,b",
                                 "a b",
                                 " a ",
                                 "it's",
                                 "say \"x\"",
                                 "back\\slash",
                                 "ends\\",
                                 "a\\\"",
                                 "a\\\\\"b\\",
                                 "$HOME `ls` $(ls)",
                                 "${exp_dir}",
                                 "a\\${b}",
                                 "[1]",
                                 "{a: 1}",
                                 "a:b",
                                 "null",
                                 "true",
                                 "12",
                                 "1e5",
                                 "",
                                 "~",
                                 "#x",
                                 "ü/漢",
                                 "*?",
                                 "a\\ b"}) {
    EXPECT_EQ(read_back(text), text) << argument("key", text);
  }
}

TEST(Argument, AShellTakesAWordForOne) {
  const std::string text = "a 'b' \"c\" $d \\ *";
  EXPECT_EQ(by_shell(shell_word(text) + " " + shell_word("") + " " + shell_word("x/y.yaml")),
            text + "\n\nx/y.yaml\n");
}

}  // namespace
}  // namespace phalanx::config
