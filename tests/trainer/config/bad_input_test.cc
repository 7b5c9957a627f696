// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/trainer/config/example.h"
#include "trainer/base/user_error.h"

namespace phalanx::config {
namespace {

/// A config with mistakes, and the whole message that its user sees, caret included.
struct BadInput {
  const char* name;
  std::string yaml;
  std::vector<std::string> overrides;
  std::string message;

  friend std::ostream& operator<<(std::ostream& stream, const BadInput& input) {
    return stream << input.yaml;
  }
};

std::string message_of(const BadInput& input) {
  try {
    resolve_example(input.yaml, input.overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, AreReportedAtTheirPlace) {
  EXPECT_EQ(message_of(GetParam()), GetParam().message);
}

/// A file of one line, `optimizer: {name: sgd}` before it, with its mistake at `column`.
BadInput line(const char* name, const std::string& text, int column, const std::string& message) {
  return {name,
          "optimizer: {name: sgd}\n" + text + "\n",
          {},
          "test.yaml:2:" + std::to_string(column) + ": " + message + "\n    2 | " + text +
              "\n      | " + std::string(static_cast<std::size_t>(column - 1), ' ') + "^"};
}

/// An override over `optimizer: {name: adamw, file: x}`, with its mistake at `column`.
BadInput argument(const char* name, const std::string& text, int column,
                  const std::string& message) {
  return {name,
          "optimizer: {name: adamw, file: x}\n",
          {text},
          "command line, argument '" + text + "', column " + std::to_string(column) + ": " +
              message + "\n      | " + text + "\n      | " +
              std::string(static_cast<std::size_t>(column - 1), ' ') + "^"};
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, BadInputs,
    testing::Values(
        BadInput{"tab",
                 "loader:\n \tworkers: 1\n",
                 {},
                 "test.yaml:2:2: a tab cannot indent; write spaces\n"
                 "    2 |   workers: 1\n"
                 "      |  ^"},
        line("duplicate", "optimizer: sgd", 1,
             "optimizer: the key is given twice; it was given first at test.yaml:1 column 1"),
        line("anchor", "level: &a info", 8,
             "level: an anchor (&a) is not allowed; refer to a value with ${a.b}"),
        line("unknown_alias", "level: *a", 8,
             "this is not valid YAML: an alias is not allowed; refer to a value with ${a.b}, or "
             "quote a text with a '*'"),
        line("merge_key", "loader: {<<: {workers: 1}}", 10,
             "loader: a merge key (<<) is not allowed; write the fields out"),
        line("tag", "level: !!str info", 8,
             "level: the tag 'tag:yaml.org,2002:str' is not allowed; the type of a value is the "
             "field's"),
        line("second_document", "---", 1,
             "the document has ended, but more follows; a config is one YAML document"),
        line("list_as_key", "loader: {[a]: 1}", 10, "loader: a key must be text"),
        line("two_colons", "level: a: b", 9,
             "this is not valid YAML: a ':' before a blank ends a key, and there is none here; "
             "quote a text with a ':'"),
        line("open_list", "level: [1, 2", 13, "this is not valid YAML: a ']' is missing here"),
        BadInput{"control_character",
                 "level: a\x01z\n",
                 {},
                 "test.yaml:1:9: a control character (0x01) is not allowed\n"
                 "    1 | level: a z\n"
                 "      |         ^"},
        BadInput{"not_utf8",
                 "level: \xC3(\n",
                 {},
                 "test.yaml:1:8: the text is not UTF-8 here\n"
                 "    1 | level: \uFFFD(\n"
                 "      |        ^"},
        line("line_end_in_a_value", "level: \"a\\nb\"", 8,
             "level: unknown value 'a b'; expected one of info, warning"),
        line("what_a_terminal_obeys", "level: \"\\e[31m\\x9b\"", 8,
             "level: unknown value ' [31m '; expected one of info, warning")),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Keys, BadInputs,
    testing::Values(
        line("unknown", "loder: {workers: 1}", 1,
             "loder: unknown key in the config; did you mean 'loader'? There are: loader, level, "
             "title, optimizer"),
        line("unknown_and_nothing_near", "zzz: 1", 1,
             "zzz: unknown key in the config; there are: title, level, loader, optimizer"),
        line("in_a_section", "loader: {shufle: true}", 10,
             "loader.shufle: unknown key in the section 'loader'; did you mean 'shuffle'? There "
             "are: shuffle, workers"),
        argument("in_a_choice", "optimizer.lrr=1", 11,
                 "optimizer.lrr: unknown key in optimizer 'adamw'; did you mean 'lr'? There are: "
                 "lr, loader, kind, file, extra, limit, betas, groups, warmup_steps"),
        BadInput{"of_another_class",
                 "optimizer: {name: adamw, betas: [0.9, 0.9]}\n",
                 {"optimizer.name=sgd"},
                 "test.yaml:1:26: optimizer.betas: unknown key in optimizer 'sgd'; it belongs to "
                 "adamw; optimizer=sgd drops it. There are: lr\n"
                 "    1 | optimizer: {name: adamw, betas: [0.9, 0.9]}\n"
                 "      |                          ^"}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Values, BadInputs,
    testing::Values(
        line("yes", "loader: {shuffle: yes}", 19,
             "loader.shuffle: 'yes' is not true or false; write true; expected true or false"),
        line("real_for_integer", "loader: {workers: 1.5}", 19,
             "loader.workers: '1.5' is a real number, not an integer; expected an integer >= 0"),
        line("exponent_for_integer", "loader: {workers: 1e3}", 19,
             "loader.workers: '1e3' is a real number; write 1000; expected an integer >= 0"),
        line("octal", "loader: {workers: 010}", 19,
             "loader.workers: '010' has a leading zero; write 10 (or 0o... for an octal number); "
             "expected an integer >= 0"),
        line("negative", "loader: {workers: -1}", 19,
             "loader.workers: '-1' is out of range; expected an integer >= 0"),
        line("beyond_64_bits", "loader: {workers: 99999999999999999999}", 19,
             "loader.workers: '99999999999999999999' does not fit in 64 bits; expected an integer "
             ">= 0"),
        line("quoted_number", "loader: {workers: '3'}", 19,
             "loader.workers: found the text \"3\"; write it without quotes; expected an integer "
             ">= 0"),
        line("quoted_word", "loader: {workers: 'x'}", 19,
             "loader.workers: found the text \"x\"; expected an integer >= 0"),
        argument("null_in_a_list", "optimizer.betas=[0.1,null]", 22,
                 "optimizer.betas[1]: found null, no value; expected a real number in [0, 1]"),
        line("empty", "title:", 1,
             "title: nothing is written here; expected text, or null to take the default"),
        line("list_for_scalar", "title: [a]", 8, "title: found a list; expected text"),
        line("map_for_scalar", "title: {a: 1}", 8, "title: found a map; expected text"),
        line("scalar_for_section", "loader: 3", 9,
             "loader: found '3'; expected a section with fields"),
        line("list_for_section", "loader: [3]", 9,
             "loader: found a list; expected a section with fields"),
        line("choice_of_text", "level: warn", 8,
             "level: unknown value 'warn', perhaps 'warning'; expected one of info, warning"),
        argument(
            "enum", "optimizer.kind=nrm", 16,
            "optimizer.kind: unknown value 'nrm', perhaps 'norm'; expected one of norm, value"),
        argument("text_for_real", "optimizer.lr=abc", 14,
                 "optimizer.lr: 'abc' is not a real number; expected a real number >= 0"),
        argument("infinite", "optimizer.lr=.inf", 14,
                 "optimizer.lr: '.inf' is not finite; expected a real number >= 0"),
        argument("not_a_number", "optimizer.limit=.nan", 17,
                 "optimizer.limit: '.nan', not a number, makes no sense here; expected a real "
                 "number > 0, or "
                 "null"),
        argument("open_bound", "optimizer.limit=0", 17,
                 "optimizer.limit: '0' is out of range; expected a real number > 0, or null"),
        argument("overflow", "optimizer.lr=1e999", 14,
                 "optimizer.lr: '1e999' is beyond the range of a double; expected a real number >= "
                 "0"),
        argument("list_element", "optimizer.betas=[0.9, 2]", 23,
                 "optimizer.betas[1]: '2' is out of range; expected a real number in [0, 1]"),
        argument("list_size", "optimizer.betas=[0.9]", 17,
                 "optimizer.betas: found a list of 1; expected a list of 2 real numbers in [0, 1]"),
        argument("scalar_for_list", "optimizer.betas=0.9", 17,
                 "optimizer.betas: found '0.9'; expected a list of 2 real numbers in [0, 1]"),
        argument(
            "scalar_with_commas_for_list", "optimizer.betas='0.1,0.2'", 17,
            "optimizer.betas: found '0.1,0.2'; expected a list of 2 real numbers in [0, 1]: write "
            "[0.1,0.2]"),
        argument("list_in_quotes", "optimizer.betas='[0.1, 0.2]'", 17,
                 "optimizer.betas: found '[0.1, 0.2]'; expected a list of 2 real numbers in [0, "
                 "1]; write "
                 "it without quotes"),
        argument("in_a_list_of_sections", "optimizer.groups=[{}, {workers: a}]", 33,
                 "optimizer.groups[1].workers: 'a' is not an integer; expected an integer >= 0"),
        argument("empty_path", "optimizer.file=", 16,
                 "optimizer.file: the path is empty; expected a path"),
        argument(
            "missing", "optimizer.file=???", 16,
            "optimizer.file: a mandatory value is missing: what to read; write it in the file, "
            "or give optimizer.file=VALUE, a path"),
        BadInput{"across_fields",
                 "optimizer: {name: adamw, file: x, betas: [0.5, 0.4]}\n",
                 {},
                 "test.yaml:1:42: optimizer: betas must not fall\n"
                 "    1 | optimizer: {name: adamw, file: x, betas: [0.5, 0.4]}\n"
                 "      |                                          ^"}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Names, BadInputs,
    testing::Values(
        argument("unknown", "optimizer=sdg", 11,
                 "optimizer.name: unknown optimizer 'sdg'; did you mean 'sgd'? There are: sgd, "
                 "adamw"),
        argument("other_letters", "optimizer.name=AdamW", 16,
                 "optimizer.name: unknown optimizer 'AdamW'; did you mean 'adamw'? There are: "
                 "adamw, sgd"),
        argument("a_list", "optimizer=[sgd]", 11,
                 "optimizer: found a list; expected a section with fields, or the name of one: "
                 "adamw, sgd"),
        argument("list_as_name", "optimizer.name=[sgd]", 16,
                 "optimizer.name: found a list; expected one of: adamw, sgd"),
        BadInput{"not_given",
                 "level: info\n",
                 {},
                 "test.yaml: optimizer: a mandatory value is missing: what updates the weights; "
                 "write it in the file, or give optimizer=NAME; there are: adamw, sgd"},
        BadInput{"without_name",
                 "optimizer: {lr: 1}\n",
                 {},
                 "test.yaml:1:1: optimizer: a mandatory value is missing: what updates the "
                 "weights; write it in the file, or give optimizer=NAME; there are: adamw, sgd\n"
                 "    1 | optimizer: {lr: 1}\n"
                 "      | ^"}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Interpolations, BadInputs,
    testing::Values(
        line("unknown_path", "title: ${loader.worker}", 8,
             "title: there is no 'loader.worker'; did you mean 'loader.workers'?"),
        line("within_text", "title: a ${x.y}", 10, "title: there is no 'x.y'"),
        line("of_itself", "title: ${title}", 8,
             "title: the interpolation goes round in a circle: title -> title"),
        line("behind_escapes", "title: \"\\x41é ${level} ${x.y}\"", 24, "title: there is no 'x.y'"),
        line("made_of_an_escape", "title: \"\\x24{x.y}\"", 8, "title: there is no 'x.y'"),
        BadInput{"on_a_further_line",
                 "optimizer: {name: sgd}\ntitle: |\n  a\n  b ${x.y}\n",
                 {},
                 "test.yaml:4:5: title: there is no 'x.y'\n    4 |   b ${x.y}\n      |     ^"},
        line("within_another", "title: a ${oc.env:PHALANX_NO_SUCH,${x.y}}", 35,
             "title: there is no 'x.y'"),
        line("not_closed", "title: a ${level", 10,
             "title: the interpolation ${ is not closed by }"),
        line("beyond", "title: ${..level}", 8,
             "title: ${..level} leads out of the config: 'title' has 0 sections around it"),
        argument(
            "element", "optimizer.lr=${.betas[2]}", 14,
            "optimizer.lr: there is no 'optimizer.betas[2]'; 'optimizer.betas' has 2 elements, "
            "numbered from 0"),
        line("empty", "title: ${}", 8,
             "title: ${} names no value; write the whole dotted path, such as ${optimizer.lr}, or "
             "${.lr} for a field beside this one"),
        line("unknown_resolver", "title: ${env:HOME}", 8,
             "title: unknown resolver 'env'; there is oc.env: ${oc.env:VARIABLE,default}"),
        line("unset_variable", "title: ${oc.env:PHALANX_NO_SUCH}", 8,
             "title: the environment variable 'PHALANX_NO_SUCH' is not set; set it or give a "
             "default: ${oc.env:PHALANX_NO_SUCH,default}"),
        line("section_within_text", "title: a ${loader}", 10,
             "title: ${loader} is no single value and cannot be part of a text"),
        line("wrong_type", "loader: {workers: '${level}'}", 19,
             "loader.workers: found the text \"info\"; expected an integer >= 0"),
        argument("missing_value", "title=${optimizer.none}", 7,
                 "title: there is no 'optimizer.none'")),
    [](const auto& info) { return info.param.name; });

TEST(BadInputs, CycleNamesEveryStep) {
  const std::string message =
      message_of({"",
                  "title: ${level}\nlevel: ${loader.workers}\nloader: {workers: '${title}'}\n"
                  "optimizer: sgd\n",
                  {},
                  ""});
  EXPECT_EQ(message,
            "test.yaml:1:8: title: the interpolation goes round in a circle: title -> level -> "
            "loader.workers -> title\n"
            "    1 | title: ${level}\n"
            "      |        ^");
}

TEST(BadInputs, OfADefaultAreTheFiles) {
  struct Top {
    std::string a = "${b.c}";
    static void describe(Schema<Top>& s) { s.field("a", &Top::a, "refers to what nobody gave"); }
  };
  Diagnostics diagnostics;
  resolve(declaration<Top>(), parse_yaml("{}", "test.yaml", diagnostics), diagnostics);
  EXPECT_EQ(diagnostics.text(), "test.yaml: a: there is no 'b.c'\n");
}

TEST(BadInputs, AValueThatRefersToAMistakeIsNotReportedItself) {
  const std::string message =
      message_of({"",
                  "title: ${nope}\noptimizer: {name: adamw, file: '${title}', betas: [0.9, 0.8]}\n",
                  {},
                  ""});
  EXPECT_EQ(message,
            "test.yaml:1:8: title: there is no 'nope'\n"
            "    1 | title: ${nope}\n"
            "      |        ^");
}

TEST(BadInputs, AreAllReportedAtOnceInOrder) {
  const std::string message = message_of({"",
                                          "optimizer:\n"
                                          "  name: adamw\n"
                                          "  lr: -1\n"
                                          "  lr: 2\n"
                                          "  bets: [0.9]\n"
                                          "loader: {workers: x, shuffle: ${nope}}\n",
                                          {"level", "level=loud"},
                                          ""});
  EXPECT_EQ(message,
            "test.yaml:1:1: optimizer.file: a mandatory value is missing: what to read; write it "
            "in the file, or give optimizer.file=VALUE, a path\n"
            "    1 | optimizer:\n"
            "      | ^\n"
            "test.yaml:3:7: optimizer.lr: '-1' is out of range; expected a real number >= 0\n"
            "    3 |   lr: -1\n"
            "      |       ^\n"
            "test.yaml:4:3: optimizer.lr: the key is given twice; it was given first at "
            "test.yaml:3 column 3\n"
            "    4 |   lr: 2\n"
            "      |   ^\n"
            "test.yaml:5:3: optimizer.bets: unknown key in optimizer 'adamw'; did you mean "
            "'betas'? There are: betas, lr, kind, file, extra, groups, limit, loader, "
            "warmup_steps\n"
            "    5 |   bets: [0.9]\n"
            "      |   ^\n"
            "test.yaml:6:19: loader.workers: 'x' is not an integer; expected an integer >= 0\n"
            "    6 | loader: {workers: x, shuffle: ${nope}}\n"
            "      |                   ^\n"
            "test.yaml:6:31: loader.shuffle: there is no 'nope'\n"
            "    6 | loader: {workers: x, shuffle: ${nope}}\n"
            "      |                               ^\n"
            "command line, argument 'level', column 1: this is no override; write key=value, such "
            "as optimizer.lr=0.1\n"
            "      | level\n"
            "      | ^\n"
            "command line, argument 'level=loud', column 7: level: unknown value 'loud'; expected "
            "one of info, warning\n"
            "      | level=loud\n"
            "      |       ^\n"
            "8 mistakes in the config");
}

TEST(BadInputs, LongLinesAreShownAroundTheCaret) {
  const std::string blanks(200, ' ');
  EXPECT_EQ(
      message_of({"", "optimizer: {name: sgd, " + blanks + "lr: x, " + blanks + "}\n", {}, ""}),
      "test.yaml:1:228: optimizer.lr: 'x' is not a real number; expected a real number >= 0\n"
      "    1 | ..." +
          std::string(56, ' ') + "lr: x, " + std::string(37, ' ') +
          "...\n"
          "      | " +
          std::string(63, ' ') + "^");
}

TEST(BadInputs, LongArgumentsAreCutBetweenCharacters) {
  const std::string argument = "level=" + std::string(93, 'a') + "\u00e9\u00e9";
  EXPECT_TRUE(message_of({"", "optimizer: sgd", {argument}, ""})
                  .starts_with("command line, argument 'level=" + std::string(93, 'a') + "...', "));
}

TEST(BadInputs, NestingIsBounded) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_NE(message_of({"", "title: " + deep + "\n", {}, ""})
                .find("lists and maps nest deeper than 64 levels"),
            std::string::npos);
  EXPECT_NE(message_of({"", "optimizer: sgd", {"title=" + deep}, ""})
                .find("lists and maps nest deeper than 64 levels"),
            std::string::npos);
}

TEST(BadInputs, AreNotReportedWithoutEnd) {
  std::string yaml = "optimizer: sgd\n";
  for (int i = 0; i < 50000; ++i) yaml += "key" + std::to_string(i) + ": 1\n";
  const std::string message = message_of({"", yaml, {}, ""});
  EXPECT_TRUE(message.ends_with("\n200 mistakes in the config; there may be more"));
}

TEST(BadInputs, LargeDocumentsTakeNoLongerThanTheirSize) {
  std::string line = "optimizer: {name: adamw, file: x, groups: [{}";
  for (int i = 0; i < 20000; ++i) line += ", {workers: ${title}}";
  const std::string message = message_of({"", "title: ${nope}\n" + line + "]}\n", {}, ""});
  EXPECT_TRUE(message.starts_with("test.yaml:1:8: title: there is no 'nope'")) << message;
}

}  // namespace
}  // namespace phalanx::config
