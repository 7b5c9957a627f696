// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/config/example.h"
#include "trainer/base/user_error.h"

/// Where a mistake is said to be, once, and what a message tells its user to do about it.
namespace phalanx::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The mistakes of a config, without the lines that show their places.
std::string mistakes(const std::string& yaml, const std::vector<std::string>& overrides = {},
                     ExplainKey explain_key = nullptr) {
  Diagnostics diagnostics;
  try {
    Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
    for (const std::string& argument : overrides) apply_override(tree, argument, diagnostics);
    resolve(example(), tree, diagnostics, {.explain_key = explain_key});
  } catch (const ConfigError& error) {
    diagnostics = error.mistakes();
  }
  std::string text;
  for (const Diagnostic& mistake : diagnostics.all()) {
    const std::string whole = to_string(mistake);
    text += (text.empty() ? "" : "\n") + whole.substr(0, whole.find('\n'));
  }
  return text;
}

TEST(UnknownKey, IsToldWhoseItIs) {
  EXPECT_EQ(mistakes("optimizer: {name: sgd, betas: [0.9, 0.9]}"),
            "test.yaml:1:24: optimizer.betas: unknown key in optimizer 'sgd'; it belongs to adamw. "
            "There are: lr");
  EXPECT_EQ(mistakes("optimizer: {name: sgd, adamw: {lr: 1}}"),
            "test.yaml:1:24: optimizer.adamw: unknown key in optimizer 'sgd'; it is picked by "
            "name: {name: adamw, ...}. There are: lr");
  EXPECT_THAT(mistakes("optimizer: sgd\nshuffle: true"),
              HasSubstr("did you mean 'loader.shuffle' or 'optimizer.extra.shuffle' or "
                        "'optimizer.loader.shuffle'?"));
  EXPECT_THAT(mistakes("optimizer: sgd", {"betas=[1, 1]"}),
              HasSubstr("unknown key in the config; did you mean 'optimizer.betas'?"));
}

/// What another program's words mean here: learning_rate, optim.lr, and some of ours.
KnownWord explain(std::string_view path) {
  if (path.ends_with("learning_rate")) {
    return {.text = "learning_rate is here: optimizer.lr", .fields = {"optimizer.lr"}};
  }
  if (path.ends_with("optim.lr")) {
    return {
        .text = "optim.lr is here: optimizer.lr", .is_of_place = true, .fields = {"optimizer.lr"}};
  }
  if (path == "levels" || path.ends_with(".workers") || path.ends_with(".lr")) {
    return {.text = "another's word is here: level", .fields = {"level"}};
  }
  return {};
}

TEST(UnknownKey, OfASectionWithAWrongLetterHasOurFields) {
  EXPECT_THAT(mistakes("optimizer: sgd\nlodaer: {workers: 1}", {}, explain),
              AllOf(HasSubstr("lodaer: unknown key in the config; did you mean 'loader'?"),
                    Not(HasSubstr("another's word"))));
  EXPECT_THAT(mistakes("optmzer: {name: sgd, lr: 1}", {}, explain),
              AllOf(HasSubstr("optmzer: unknown key in the config; did you mean 'optimizer'?"),
                    Not(HasSubstr("another's word"))))
      << "two letters are missing";
}

TEST(UnknownKey, OfASectionWithAWrongLetterMayHaveAnothersWordForAFieldOfIts) {
  EXPECT_THAT(mistakes("optimizr: {learning_rate: 1}", {}, explain),
              AllOf(HasSubstr("optimizr: unknown key in the config; did you mean 'optimizer'?"),
                    HasSubstr("optimizr.learning_rate: unknown key; learning_rate is here")));
}

TEST(UnknownKey, IsAnothersWordWhereThatFitsLetterByLetter) {
  EXPECT_EQ(mistakes("optimizer: sgd\noptim: {lr: 1}", {}, explain),
            "test.yaml:2:9: optim.lr: unknown key; optim.lr is here: optimizer.lr")
      << "optimizer, which begins so, has lr, too";
  EXPECT_THAT(mistakes("optimizer: sgd\nlevels: 1", {}, explain),
              HasSubstr("levels: unknown key in the config; another's word is here: level"));
}

TEST(UnknownKey, IsToldWhatIsKnownOfItElsewhere) {
  EXPECT_EQ(mistakes("optimizer: sgd\nlearning_rate: 1", {}, explain),
            "test.yaml:2:1: learning_rate: unknown key in the config; learning_rate is here: "
            "optimizer.lr");
  EXPECT_EQ(mistakes("optimizer: sgd", {"optimizer.learning_rate=1"}, explain),
            "command line, argument 'optimizer.learning_rate=1', column 11: "
            "optimizer.learning_rate: unknown key in optimizer 'sgd'; learning_rate is here: "
            "optimizer.lr");
  EXPECT_THAT(mistakes("optimizer: {name: sgd, betas: [0.9, 0.9]}", {}, explain),
              HasSubstr("it belongs to adamw. There are: lr"));
}

TEST(UnknownKey, IsToldSoWithinASectionThatIsUnknown) {
  EXPECT_EQ(mistakes("optimizer: sgd\nargs: {learning_rate: 1}", {}, explain),
            "test.yaml:2:8: args.learning_rate: unknown key; learning_rate is here: optimizer.lr");
  EXPECT_EQ(mistakes("optimizer: sgd\nargs: {learning_rate: 1, other: 2}", {}, explain),
            "test.yaml:2:1: args: unknown key in the config; there are: title, level, loader, "
            "optimizer\n"
            "test.yaml:2:8: args.learning_rate: unknown key; learning_rate is here: optimizer.lr");
}

/// Words whose fields this config may lack.
KnownWord explain_elsewhere(std::string_view path) {
  if (path.ends_with("far")) {
    return {.text = "far is here: nowhere.far", .fields = {"nowhere.far"}};
  }
  if (path.ends_with("near")) {
    return {.text = "near is here: level, loader.far", .fields = {"level", "loader.far"}};
  }
  if (path.ends_with("threads")) {
    return {.text = "threads is here: optimizer.extra.workers",
            .fields = {"optimizer.extra.workers"}};
  }
  if (path.ends_with("workers")) {
    return {.text = "workers is here: optimizer.extra.workers",
            .fields = {"optimizer.extra.workers"}};
  }
  return {};
}

TEST(UnknownKey, OfAnotherIsToldWhichOfItsFieldsThisConfigLacks) {
  EXPECT_EQ(mistakes("optimizer: sgd\nfar: 1", {}, explain_elsewhere),
            "test.yaml:2:1: far: unknown key in the config; far is here: nowhere.far; this trainer "
            "has no nowhere.far: leave it out");
  EXPECT_EQ(mistakes("optimizer: sgd\nnear: 1", {}, explain_elsewhere),
            "test.yaml:2:1: near: unknown key in the config; near is here: level, loader.far; this "
            "trainer has no loader.far");
  EXPECT_EQ(mistakes("optimizer: sgd\nthreads: 1", {}, explain_elsewhere),
            "test.yaml:2:1: threads: unknown key in the config; threads is here: "
            "optimizer.extra.workers")
      << "a field of a class that is not chosen";
}

TEST(UnknownKey, IsNotExplainedByItself) {
  EXPECT_EQ(mistakes("optimizer: {name: sgd, extra: {workers: 1}}", {}, explain_elsewhere),
            "test.yaml:1:24: optimizer.extra: unknown key in optimizer 'sgd'; it belongs to adamw. "
            "There are: lr");
}

TEST(UnknownKey, OfAClassIsLookedForWithinItFirst) {
  EXPECT_THAT(mistakes("optimizer: {name: adamw, file: x, shuffle: true}"),
              HasSubstr("unknown key in optimizer 'adamw'; did you mean 'optimizer.extra.shuffle' "
                        "or 'optimizer.loader.shuffle'? There are: "));
  EXPECT_EQ(mistakes("optimizer: {name: sgd, loader: {lr: 1}}"),
            "test.yaml:1:24: optimizer.loader: unknown key in optimizer 'sgd'; did you mean "
            "'optimizer.lr'? There are: lr")
      << "another class has such a section";
}

TEST(UnknownKey, IsToldHowAFileSaysIt) {
  EXPECT_THAT(mistakes("optimizer: sgd\nloader.shuffle: true"),
              HasSubstr("a dotted key is for the command line, in a file write loader: {shuffle: "
                        "...}."));
  EXPECT_THAT(mistakes("optimizer: sgd\nloader: {shuffle:true}"),
              HasSubstr("write a blank after the colon: shuffle: true."));
}

TEST(MissingText, IsToldWhereItIsMissing) {
  EXPECT_EQ(mistakes("optimizer: sgd\nlevel\n"),
            "test.yaml:2:1: level: a ':' and a value are missing behind the key");
  EXPECT_EQ(mistakes("optimizer: sgd\nlevel : info\ntitle    :  x"), "");
  EXPECT_EQ(mistakes("optimizer: sgd\ntitle: 'it''s \nlevel: info"),
            "test.yaml:2:8: the quote that begins here is not closed");
  EXPECT_EQ(mistakes("optimizer: sgd\ntitle: 'it''s \nlevel: info\n"),
            "test.yaml:2:8: the quote that begins here is not closed");
  EXPECT_EQ(mistakes("optimizer: sgd\ntitle: \"a \\\" \nlevel: info"),
            "test.yaml:2:8: the quote that begins here is not closed");
  EXPECT_EQ(mistakes("optimizer: sgd\ntitle: \"a \\\\\"\n\"level\": 'in''fo'"),
            "test.yaml:3:10: level: unknown value 'in'fo', perhaps 'info'; expected one of info, "
            "warning");
}

TEST(Blank, IsToldByItsLine) {
  EXPECT_EQ(mistakes("optimizer:\n  name: adamw\n  file: x\n  betas:\n    - 0.9\n    -\n"),
            "test.yaml:6:5: optimizer.betas[1]: nothing is written here; expected a real number in "
            "[0, 1]");
}

TEST(Alias, IsNamed) {
  EXPECT_EQ(mistakes("optimizer: sgd\nloader: {workers: &w 1, shuffle: *w}"),
            "test.yaml:2:19: loader.workers: an anchor (&w) is not allowed; refer to a value with "
            "${a.b}\n"
            "test.yaml:2:34: loader.shuffle: an alias (*w) is not allowed; write the value again, "
            "or ${a.b}");
}

TEST(Missing, MayStandInBraces) {
  EXPECT_THAT(mistakes("{optimizer: {name: adamw, file: ???}}"),
              HasSubstr("test.yaml:1:33: optimizer.file: a mandatory value is missing"));
  EXPECT_THAT(mistakes("{optimizer: {name: ???}}"),
              HasSubstr("optimizer: a mandatory value is missing"));
  EXPECT_EQ(mistakes("{optimizer: sgd, title: 'what\?\?\?'}"), "");
}

TEST(Null, IsBlamedWhereItTakesBackAClass) {
  EXPECT_THAT(mistakes("optimizer: sgd", {"optimizer=null"}),
              testing::StartsWith("command line, argument 'optimizer=null', column 11: optimizer: "
                                  "a mandatory value is missing"));
}

TEST(Interpolation, OfAClassIsRefusedOnce) {
  EXPECT_EQ(mistakes("optimizer: ${level}"), "test.yaml:1:12: optimizer: there is no 'level'");
  EXPECT_EQ(mistakes("optimizer: {name: \"${level}\", lr: 1}"),
            "test.yaml:1:20: optimizer.name: there is no 'level'");
}

TEST(Interpolation, IsToldHowAVariableIsWritten) {
  EXPECT_EQ(mistakes("optimizer: sgd\ntitle: ${PHALANX_HOME}"),
            "test.yaml:2:8: title: there is no 'PHALANX_HOME'; an environment variable is "
            "${oc.env:PHALANX_HOME}");
  EXPECT_EQ(mistakes("optimizer: sgd\ntitle: ${oc.env:}"),
            "test.yaml:2:8: title: oc.env names no variable; write ${oc.env:VARIABLE,default}");
}

TEST(CheckAcrossFields, IsBlamedOnWhatWasWrittenLast) {
  const std::string file = "optimizer: {name: adamw, file: x, betas: [0.5, 0.9]}";
  EXPECT_EQ(mistakes(file, {"optimizer.betas=[0.5, 0.4]"}),
            "command line, argument 'optimizer.betas=[0.5, 0.4]', column 17: optimizer: betas must "
            "not fall");
}

TEST(Mistakes, OfFilesComeBeforeThoseOfArguments) {
  EXPECT_EQ(mistakes("optimizer: {name: sgd, lr: x}", {"="}).substr(0, 9), "command l");
  Diagnostics diagnostics;
  Node tree = parse_yaml("optimizer: {name: sgd, lr: x}", "test.yaml", diagnostics);
  apply_override(tree, "=", diagnostics);
  resolve(example(), tree, diagnostics);
  EXPECT_THAT(diagnostics.text(), testing::StartsWith("test.yaml:1:28"));
}

TEST(Message, ShowsTheBeginningOfALongWord) {
  EXPECT_EQ(mistakes("optimizer: {name: sgd, lr: " + std::string(200, '9') + "x}"),
            "test.yaml:1:28: optimizer.lr: '" + std::string(59, '9') +
                "...' is not a real number; expected a real number >= 0");
  const std::string path = std::string(120, 'a') + "/b.yaml";
  Diagnostics diagnostics;
  diagnostics.add({}, "", "there is no file " + path);
  EXPECT_EQ(diagnostics.text(), "there is no file " + path + "\n");
}

}  // namespace
}  // namespace phalanx::config
