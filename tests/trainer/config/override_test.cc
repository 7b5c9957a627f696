// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"

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
  EXPECT_EQ(after({"z=\"a'b\""}), "{z: \"a'b\"}");
}

TEST(Override, TakesPlainTextAsItStands) {
  EXPECT_EQ(after({"z=a: b #d"}), "{z: \"a: b #d\"}");
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
  EXPECT_EQ(after({"a={lr: 1}"}, "{a: sgd}"), "{a: {name: sgd, lr: 1}}");
  EXPECT_EQ(after({"a={lr: 1}"}, "{a: 3}"), "{a: {lr: 1}}");
  EXPECT_EQ(after({"a={lr: 1}"}, "a: ???"), "{a: {name: ???, lr: 1}}");
  EXPECT_EQ(after({"a={lr: 1}"}, "a: ${b}"), "{a: {name: \"${b}\", lr: 1}}");
  EXPECT_EQ(after({"a=${b}"}, "{a: {x: 1}}"), "{a: \"${b}\"}");
}

TEST(Override, ReadsTextAsHydraDoes) {
  EXPECT_EQ(after({"z=a\\,b"}), "{z: \"a,b\"}");
  EXPECT_EQ(after({"z=a\\ "}), "{z: \"a \"}");
  EXPECT_EQ(after({"z=f\\(x\\)"}), "{z: \"f(x)\"}");
  EXPECT_EQ(after({"z=a\\b"}), "{z: \"a\\\\b\"}");
  EXPECT_EQ(after({"z='it\\'s'"}), "{z: \"it's\"}");
  EXPECT_EQ(after({"z='a\\\\'"}), "{z: \"a\\\\\"}");
  EXPECT_EQ(after({"z='a\\nb'"}), "{z: \"a\\\\nb\"}");
  EXPECT_EQ(after({"z=[a b, 'c,d', [], {}]"}), "{z: [\"a b\", \"c,d\", [], {}]}");
  EXPECT_EQ(after({"z={a:1,b:x:y}"}), "{z: {a: 1, b: \"x:y\"}}");
  EXPECT_EQ(after({"z=[${a.b},1]"}), "{z: [\"${a.b}\", 1]}");
  EXPECT_EQ(after({"z=NULL"}), "{z: null}");
  EXPECT_EQ(after({"z='null'"}), "{z: \"null\"}");
}

TEST(Override, SetsAnElementOfAList) {
  EXPECT_EQ(after({"a[1]=9"}, "{a: [1, 2]}"), "{a: [1, 9]}");
  EXPECT_EQ(after({"a[0]={c: 9}"}, "{a: [{b: 1}]}"), "{a: [{b: 1, c: 9}]}");
  EXPECT_EQ(after({"a[0].b=9"}, "{a: [{b: 1, c: 2}]}"), "{a: [{b: 9, c: 2}]}");
  EXPECT_EQ(after({"a.b[0][1]=x"}, "{a: {b: [[1, 2]]}}"), "{a: {b: [[1, x]]}}");
  EXPECT_EQ(after({"a=[1,2]", "a[0]=3"}), "{z: 0, a: [3, 2]}");
  EXPECT_EQ(after({"a[2]=9"}, "{a: [1, 2]}"), "2: 'a' has 2 elements, numbered from 0");
  EXPECT_EQ(after({"z[0]=9"}), "2: 'z' is no list here");
  EXPECT_EQ(after({"b[0]=9"}),
            "2: 'b' is not written in the config, so it has no element to set; set the whole list: "
            "b=[...]");
  for (const char* wrong : {"a[x]=1", "a[]=1", "a[-1]=1", "a[1=1", "a[99999999999999999999]=1"}) {
    EXPECT_EQ(after({wrong}, "{a: [1, 2]}"),
              "2: an element of a list is named by its number, from 0: key[0]=value");
  }
}

TEST(Override, AddsOnlyWhatIsNotSet) {
  EXPECT_EQ(after({"+a.b=1"}), "{z: 0, a: {b: 1}}");
  EXPECT_EQ(after({"+z=1"}, "z: ???"), "{z: 1}");
  EXPECT_EQ(after({"+z=1"}, "z: null"), "{z: 1}");
  EXPECT_EQ(after({"+a={c: 2}"}, "{a: {b: 1}}"), "{a: {b: 1, c: 2}}");
  EXPECT_EQ(after({"+z=1"}),
            "1: 'z' is set already (a.yaml:1), and + only adds; write z=... or ++z=...");
  EXPECT_EQ(after({"a=1", "+a=2"}),
            "1: 'a' is set already (command line), and + only adds; write a=... or ++a=...");
  EXPECT_EQ(after({"++z=1", "++a=2"}), "{z: 1, a: 2}");
}

TEST(Override, TakesBackWhatIsSet) {
  EXPECT_EQ(after({"~z"}, "{z: 0, a: 1}"), "{a: 1}");
  EXPECT_EQ(after({"~a.b"}, "{a: {b: 1, c: 2}}"), "{a: {c: 2}}");
  EXPECT_EQ(after({"~a[0].b"}, "{a: [{b: 1, c: 2}]}"), "{a: [{c: 2}]}");
  EXPECT_EQ(after({"~z=0"}, "{z: 0, a: 1}"), "{a: 1}");
  EXPECT_EQ(after({"~z=1"}, "{z: 0, a: 1}"),
            "4: 'z' has another value here (a.yaml:1), so it stays; ~z removes it whatever it is");
  EXPECT_EQ(after({"~b"}),
            "1: 'b' is not set by a file or an earlier override: there is nothing to remove");
  const std::string nothing =
      " is not set by a file or an earlier override: there is nothing to remove";
  EXPECT_EQ(after({"~optimiser"}, "{optimizer: {lr: 1}}"),
            "1: 'optimiser'" + nothing + "; did you mean 'optimizer'?");
  EXPECT_EQ(after({"~optimiser.lr"}, "{optimizer: {lr: 1}}"),
            "1: 'optimiser.lr'" + nothing + "; did you mean 'optimizer.lr'?");
  EXPECT_EQ(after({"~a.b[0].lenght"}, "{a: {b: [{length: 1}]}}"),
            "1: 'a.b[0].lenght'" + nothing + "; did you mean 'a.b[0].length'?");
  EXPECT_EQ(after({"~z.x"}), "1: 'z.x'" + nothing);
  EXPECT_EQ(after({"~a={c: [{e: 2, d: 1}], b: x}"}, "{a: {b: x, c: [{d: 1, e: 2}]}, z: 0}"),
            "{z: 0}");
  for (const char* other : {"~a={b: x}", "~a={b: x, c: 2}", "~a={b: x, d: 1}", "~a=[x, 1]"}) {
    EXPECT_EQ(
        after({other}, "{a: {b: x, c: 1}}"),
        "4: 'a' has another value here (a.yaml:1), so it stays; ~a removes it whatever it is");
  }
  EXPECT_EQ(after({"~a[0]"}, "{a: [1, 2]}"),
            "1: an element cannot be taken out of a list; set the whole list");
}

TEST(Override, SaysWhatItForces) {
  EXPECT_TRUE(is_forced("++a.b=1", "a.b"));
  EXPECT_TRUE(is_forced("++a=sgd", "a.b"));
  EXPECT_TRUE(is_forced("++a.name=sgd", "a.b"));
  EXPECT_FALSE(is_forced("++a={b: 1}", "a.c"));
  EXPECT_FALSE(is_forced("++a=  {b: 1}", "a.c"));
  EXPECT_TRUE(is_forced("++a=", "a.c"));
  EXPECT_FALSE(is_forced("++b", "a"));
  EXPECT_TRUE(is_forced("++a[0]=1", "a"));
  EXPECT_FALSE(is_forced("++a.b=1", "a.bc"));
  EXPECT_FALSE(is_forced("a.b=1", "a.b"));
  EXPECT_FALSE(is_forced("+a.b=1", "a.b"));
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
  EXPECT_EQ(after({"a b=1"}),
            "2: this cannot be in a key; write key=value with a dotted key, such "
            "as optimizer.lr=0.1");
  EXPECT_EQ(after({"a..b=1"}), "2: a part of the dotted key is missing");
  EXPECT_EQ(after({".a=1"}), "1: a part of the dotted key is missing");
  EXPECT_EQ(after({"a.=1"}), "2: a part of the dotted key is missing");
  EXPECT_EQ(after({"a=[1"}), "3: the list that begins here is not closed");
  EXPECT_EQ(after({"a={b: 1"}), "3: the map that begins here is not closed");
  EXPECT_EQ(after({"a='x"}), "3: the quoted text that begins here is not closed");
  EXPECT_EQ(after({"a=${x"}), "3: the interpolation ${ is not closed by }");
  const std::string more = "the value has ended, but more follows; quote it, or leave this out";
  EXPECT_EQ(after({"a=[1] 2"}), "7: " + more);
  EXPECT_EQ(after({"a='x': 1"}), "6: " + more);
  EXPECT_EQ(after({"a={b: 1, b: 2}"}), "10: the key 'b' is given twice");
  EXPECT_EQ(after({"a={[1]: 2}"}), "4: a key is text; write {key: value}");
  EXPECT_EQ(after({"a={null: 1}"}), "4: a key is text; write {key: value}");
  EXPECT_EQ(after({"a={b}"}), "5: a ':' and a value are missing after the key");
  EXPECT_EQ(after({"a=[1,]"}), "6: a value is missing after the comma");
  EXPECT_EQ(after({"a=[,1]"}), "4: a value is expected here, not ','");
  EXPECT_EQ(after({"a={b: }"}), "7: a value is expected here, not '}'");
  EXPECT_EQ(after({"a=['x' y]"}), "8: a comma or the end of the list is expected here");
  const std::string parenthesis = "'(' has a meaning here; quote the text, or write a \\ before it";
  EXPECT_EQ(after({"a=(x)"}), "3: " + parenthesis);
  EXPECT_EQ(after({"a=a b(x)"}), "6: " + parenthesis);
  EXPECT_EQ(after({"a=$(x)"}), "4: " + parenthesis);
  const std::string functions =
      "(...) are not supported: a run takes one value, and its field knows the type; write that "
      "value, or for text with a ( quote it or write \\(";
  EXPECT_EQ(after({"a=choice(1,2)"}), "3: functions such as choice" + functions);
  EXPECT_EQ(after({"a=[1, int (2.5)]"}), "7: functions such as int" + functions);
  EXPECT_EQ(after({"a=1,2"}),
            "4: a comma separates values here, and one value is expected; for a list write [a,b], "
            "for text with a comma quote it or write \\,");
  EXPECT_EQ(after({"+=1"}), "2: the key is missing; write key=value");
  EXPECT_EQ(after({"~"}), "1: this is no override; write key=value, such as optimizer.lr=0.1");
  for (const char* group : {"a@b=1", "a/b=1"}) {
    EXPECT_EQ(after({group}),
              "2: there are no config groups and packages (group/option, key@package); name a "
              "field by its dotted key, such as optimizer.name=sgd, and lay files over each other: "
              "trainer base.yaml other.yaml");
  }
  for (const char* include : {"include=x.yaml", "+include=[x.yaml]", "++include=x", "~include"}) {
    const int mark = static_cast<int>(std::string_view(include).find('i'));
    EXPECT_EQ(after({include}),
              std::to_string(mark + 1) +
                  ": include stands in a file; on the command line lay files over each other, from "
                  "left to right: trainer base.yaml other.yaml key=value");
  }
  EXPECT_EQ(after({"a.include=1", "b=include"}), "{z: 0, a: {include: 1}, b: include}");
  EXPECT_EQ(after({"a=x\ny"}),
            "4: an override is one line without tabs; put such a text into a file");
  EXPECT_EQ(after({"a=\xFF"}), "3: the text is not UTF-8 here");
  EXPECT_EQ(after({"a.b=1"}, "{a: [1]}"),
            "1: 'a' is a list here; set it as a whole, or an element: a[0]=...");
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  EXPECT_EQ(after({deep + "=1"}), "1: the key has too many parts");
}

TEST(Overrides, SayThatAnEscapeIsNone) {
  const auto warnings_of = [](const std::string& argument) {
    Node tree = Node::map();
    Diagnostics diagnostics;
    apply_override(tree, argument, diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
    return diagnostics.warnings().size();
  };
  EXPECT_EQ(warnings_of(R"(stop=["\n"])"), 1);
  EXPECT_EQ(warnings_of(R"(stop=["a\tb "])"), 0) << "of a word";
  EXPECT_EQ(warnings_of(R"(stop=\n)"), 1) << "as a shell hands on stop=\"\\n\"";
  EXPECT_EQ(warnings_of(R"(stop=[\n, \t])"), 1);
  EXPECT_EQ(warnings_of(R"(prompt=One line\nAnother)"), 1);
  EXPECT_EQ(warnings_of(R"(stop=['\n'])"), 0);
  EXPECT_EQ(warnings_of(R"(path=C:\new\temp)"), 0);
  EXPECT_EQ(warnings_of(R"(path=\\n)"), 0);
  EXPECT_EQ(warnings_of(R"(path="\new")"), 0);
  EXPECT_EQ(warnings_of(R"(path="\\n")"), 0);
}

}  // namespace
}  // namespace phalanx::config
