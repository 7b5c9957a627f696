#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trainer/config/parse.h"
#include "trainer/config/print.h"

namespace phalanx::config {
namespace {

/// The tree after overrides, in one line; the first mistake instead, if there is one.
std::string after(const std::vector<std::string>& overrides, const std::string& yaml = "{z: 0}") {
  Diagnostics diagnostics;
  Node tree = parse_yaml(yaml, "a.yaml", diagnostics);
  for (const std::string& argument : overrides) apply_override(tree, argument, diagnostics);
  if (!diagnostics.empty()) {
    const Diagnostic& first = diagnostics.all().front();
    return std::to_string(first.origin.column) + ": " + first.message;
  }
  return print_inline(tree, {.escape_interpolation = false});
}

TEST(Override, SetsValuesOfEveryKind) {
  EXPECT_EQ(after({"a=1"}), "{z: 0, a: 1}");
  EXPECT_EQ(after({"a.b.c=x"}), "{z: 0, a: {b: {c: x}}}");
  EXPECT_EQ(after({"a.b=1", "a.c=2", "a.b=3"}), "{z: 0, a: {b: 3, c: 2}}");
  EXPECT_EQ(after({"z=[0.9,0.95]"}), "{z: [0.9, 0.95]}");
  EXPECT_EQ(after({"z={a: 1, b: [x]}"}), "{z: {a: 1, b: [x]}}");
  EXPECT_EQ(after({"z=null"}), "{z: null}");
  EXPECT_EQ(after({"z="}), "{z: \"\"}");
  EXPECT_EQ(after({"z=  x  "}), "{z: x}");
  EXPECT_EQ(after({"z='1'"}), "{z: \"1\"}");
  EXPECT_EQ(after({"z=\"a\\tb\""}), "{z: \"a\\tb\"}");
}

TEST(Override, TakesPlainTextAsItStands) {
  EXPECT_EQ(after({"z=a: b, c #d"}), "{z: \"a: b, c #d\"}");
  EXPECT_EQ(after({"z=*.txt"}), "{z: \"*.txt\"}");
  EXPECT_EQ(after({"z=x=y"}), "{z: \"x=y\"}");
  EXPECT_EQ(after({"z=${oc.env:HOME,/x}"}), "{z: \"${oc.env:HOME,/x}\"}");
}

TEST(Override, MergesMapsAndReplacesLists) {
  EXPECT_EQ(after({"a={b: 2, c: 3}"}, "{a: {b: 1, d: 4}}"), "{a: {b: 2, d: 4, c: 3}}");
  EXPECT_EQ(after({"a=[3]"}, "{a: [1, 2]}"), "{a: [3]}");
  EXPECT_EQ(after({"a=null"}, "{a: {b: 1}}"), "{a: null}");
}

TEST(Override, TreatsAScalarSectionAsItsName) {
  EXPECT_EQ(after({"a.lr=1"}, "{a: sgd}"), "{a: {name: sgd, lr: 1}}");
  EXPECT_EQ(after({"a=sgd"}, "{a: {name: adamw, lr: 1}}"), "{a: {name: sgd, lr: 1}}");
  EXPECT_EQ(after({"a=${b}"}, "{a: {x: 1}}"), "{a: \"${b}\"}");
}

TEST(Override, KnowsWhereItsPartsStand) {
  Diagnostics diagnostics;
  Node tree = Node::map();
  apply_override(tree, "ab.cd= [x, yz]", diagnostics);
  ASSERT_TRUE(diagnostics.empty());
  const Entry& outer = tree.entries[0];
  EXPECT_EQ(outer.key_origin.column, 1);
  EXPECT_EQ(outer.value.entries[0].key_origin.column, 4);
  const Node& list = outer.value.entries[0].value;
  EXPECT_EQ(list.origin.column, 8);
  EXPECT_EQ(list.items[1].origin.column, 12);
  EXPECT_EQ(list.items[1].origin.text(), "command line");
}

TEST(Override, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(after({"abc"}), "1: this is no override; write key=value, such as optimizer.lr=0.1");
  EXPECT_EQ(after({""}), "1: this is no override; write key=value, such as optimizer.lr=0.1");
  EXPECT_EQ(after({"=1"}), "1: the key is missing; write key=value");
  EXPECT_EQ(after({"+a=1"}), "1: only key=value is read; keys are neither added nor removed");
  EXPECT_EQ(after({"a[0]=1"}), "2: an element of a list cannot be set; set the whole list");
  EXPECT_EQ(after({"a b=1"}),
            "2: this cannot be in a key; write key=value with a dotted key, such "
            "as optimizer.lr=0.1");
  EXPECT_EQ(after({"a..b=1"}), "2: a part of the dotted key is missing");
  EXPECT_EQ(after({".a=1"}), "1: a part of the dotted key is missing");
  EXPECT_EQ(after({"a.=1"}), "2: a part of the dotted key is missing");
  EXPECT_EQ(after({"a=[1"}), "5: this is not valid YAML: end of sequence flow not found");
  EXPECT_EQ(after({"a=[1] 2"}),
            "7: the value has ended, but more follows; quote it, or leave this "
            "out");
  EXPECT_EQ(after({"a='x': 1"}), "3: the quoted value has ended, but more follows");
  EXPECT_EQ(after({"a={b: 1, b: 2}"}),
            "10: the key is given twice; it was given first at command line column 4");
  EXPECT_EQ(after({"a=[&x 1]"}), "4: an anchor (&x) is not allowed; refer to a value with ${a.b}");
  EXPECT_EQ(after({"a=x\ny"}), "4: an override is one line without tabs");
  EXPECT_EQ(after({"a=\xFF"}), "3: the text is not UTF-8 here");
  EXPECT_EQ(after({"a.b=1"}, "{a: [1]}"), "1: 'a' is a list here; set it as a whole");
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  EXPECT_EQ(after({deep + "=1"}), "1: the key has too many parts");
}

}  // namespace
}  // namespace phalanx::config
