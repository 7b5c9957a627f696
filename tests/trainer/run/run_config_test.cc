// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/run/load_config.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using List = std::vector<std::string>;

// A start of a run in `exp_dir`, with these arguments behind the config.
struct Started {
  explicit Started(List overrides = {}, const std::string& exp_dir = "run")
      : user(load(std::move(overrides))), resolved(resolve_config(user, exp_dir)) {}

  static UserConfig load(List overrides) {
    overrides.insert(overrides.begin(), "tiny.yaml");
    return load_config(overrides);
  }

  UserConfig user;
  config::Node resolved;
};

class RunConfig : public CommandTest {
 protected:
  RunConfig() { fs::create_directory("run"); }

  static void keep(const Started& started, const std::string& exp_dir = "run") {
    write_config(exp_dir, started.user, started.resolved);
  }

  // What a start changes against what is kept, as it is printed.
  static List changes(const Started& started, const std::string& exp_dir = "run") {
    List lines;
    for (const auto& change : check_against_earlier(exp_dir, started.user, started.resolved)) {
      lines.push_back(to_string(change));
    }
    return lines;
  }

  // The value in config.yaml, as it is written.
  static std::string kept_text(const std::string& path) {
    config::Diagnostics diagnostics;
    const config::Node tree = config::read_file("run/config.yaml", diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
    const config::Node* node = tree.find_path(path);
    return node == nullptr ? "(absent)" : node->text;
  }

  // The value in a run made from config.yaml.
  static std::string repeated(const std::string& path, const std::string& exp_dir) {
    const UserConfig user = load_config(List{"run/config.yaml"});
    return resolve_config(user, exp_dir).find_path(path)->text;
  }
};

TEST_F(RunConfig, IsKeptWithoutItsFolderAndSaysHowToUseIt) {
  const Started started({"optimizer.lr=0.25"});
  keep(started);
  EXPECT_THAT(dir_.names("run"), ElementsAre("config.yaml")) << "nothing is left beside it";
  EXPECT_THAT(
      read("run/config.yaml"),
      AllOf(StartsWith("# "), HasSubstr("  trainer run/config.yaml\n"),
            HasSubstr("  trainer run/config.yaml exp_dir=run\n"), HasSubstr("\nexp_dir: ???\n"),
            HasSubstr("lr: 0.25  # command line"), HasSubstr("# tiny.yaml:")));
  const UserConfig again = load_config(List{"run/config.yaml"});
  EXPECT_EQ(experiment_name(again), "tiny.optimizer.lr=0.25") << "it keeps its name";
  EXPECT_TRUE(config::same_value(resolve_config(again, "run"), started.resolved));
}

TEST_F(RunConfig, CommandsInItAreThoseOfAShell) {
  fs::create_directory("my run");
  keep(Started({}, "my run"), "my run");
  EXPECT_THAT(read("my run/config.yaml"),
              HasSubstr("trainer 'my run/config.yaml' 'exp_dir=\"my run\"'\n"));
}

TEST_F(RunConfig, WhatRefersToTheFolderStillDoes) {
  setenv("PHALANX_TEST_PART", "part", 1);
  const Started started({"log_dir_name=${exp_dir}/${oc.env:PHALANX_TEST_PART}/${training.seed}"});
  EXPECT_EQ(started.resolved.find("log_dir_name")->text, "run/part/0");
  keep(started);
  unsetenv("PHALANX_TEST_PART");
  EXPECT_EQ(kept_text("log_dir_name"), "${exp_dir}/part/0") << "the rest is what it was";
  EXPECT_EQ(repeated("log_dir_name", "runs/tiny/run_1"), "runs/tiny/run_1/part/0");
}

TEST_F(RunConfig, WhatRefersToItByWayOfAnotherFieldDoesToo) {
  const Started direct({"exp_name=${log_dir_name}", "log_dir_name=in_${exp_dir}"});
  keep(direct);
  EXPECT_EQ(kept_text("log_dir_name"), "in_${exp_dir}");
  EXPECT_EQ(kept_text("exp_name"), "in_run") << "the name stays, and names the folder";
  EXPECT_EQ(repeated("log_dir_name", "x"), "in_x");
  EXPECT_THAT(changes(direct), IsEmpty());
}

TEST_F(RunConfig, TextThatOnlyLooksLikeAReferenceStaysText) {
  for (const std::string text : {R"(\${exp_dir}/x)", R"(\${exp_dir}/${exp_dir})",
                                 R"(a\b/${exp_dir})", R"(a\\${exp_dir})", "⟨exp_dir⟩", "run/x"}) {
    const Started started({"log_dir_name='" + text + "'"});
    keep(started);
    const UserConfig again = load_config(List{"run/config.yaml"});
    EXPECT_TRUE(config::same_value(resolve_config(again, "run"), started.resolved))
        << text << "\n"
        << read("run/config.yaml");
  }
}

TEST_F(RunConfig, AValueThatOnlyATrueFolderGivesStaysAsItIs) {
  fs::create_directory("descent");
  const Started started({"optimizer=${exp_dir}"}, "descent");
  keep(started, "descent");
  EXPECT_THAT(read("descent/config.yaml"),
              AllOf(HasSubstr("name: descent"), HasSubstr("exp_dir: ???")));
}

TEST_F(RunConfig, OneThatSaysTheSameStaysWithItsOrigins) {
  keep(Started({"optimizer.lr=0.25"}));
  const std::string text = read("run/config.yaml");
  const UserConfig user = load_config(List{"run/config.yaml"});
  write_config("run", user, resolve_config(user, "run"));
  EXPECT_EQ(read("run/config.yaml"), text);
  keep(Started({"optimizer.lr=0.5"}));
  EXPECT_THAT(read("run/config.yaml"), HasSubstr("lr: 0.5  # command line"));
  // A run that has moved says so.
  fs::rename("run", "moved");
  const Started moved({"optimizer.lr=0.5"}, "moved");
  keep(moved, "moved");
  EXPECT_THAT(read("moved/config.yaml"), HasSubstr("exp_dir=moved"));
}

TEST_F(RunConfig, AResumeWithItHandsItsOriginsOn) {
  keep(Started({"optimizer.lr=0.25", "log_dir_name='a  # b'"}));
  const std::string first = read("run/config.yaml");
  for (const char* steps : {"9", "10"}) {
    const UserConfig user =
        load_config(List{"run/config.yaml", std::string("training.max_steps=") + steps});
    write_config("run", user, resolve_config(user, "run"));
  }
  std::string expected = first;
  const std::string steps = "  max_steps: 8  # tiny.yaml:2\n";
  ASSERT_NE(first.find(steps), std::string::npos) << first;
  expected.replace(first.find(steps), steps.size(), "  max_steps: 10  # command line\n");
  EXPECT_EQ(read("run/config.yaml"), expected);
}

TEST_F(RunConfig, ThatCannotBeWrittenIsAUsersMistake) {
  write("file", "in place of the folder");
  const Started started({}, "file");
  EXPECT_THAT([&] { write_config("file", started.user, started.resolved); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("file/config.yaml"), HasSubstr("exp_dir"))));
  EXPECT_THAT(dir_.names("."), ElementsAre("file", "run", "tiny.yaml"));
}

TEST_F(RunConfig, AnEarlierOneMayDifferInWhatAResumeMayChange) {
  EXPECT_THAT(changes(Started()), IsEmpty()) << "none yet";
  keep(Started());
  EXPECT_THAT(changes(Started()), IsEmpty());
  EXPECT_THAT(changes(Started({"training.max_steps=9", "exp_name=other"})),
              ElementsAre("exp_name: was tiny, now other (command line)",
                          "training.max_steps: was 8, now 9 (command line)"));
  EXPECT_THAT(changes(Started({"optimizer.lr=0.5", "exp_name=tiny"})),
              ElementsAre("optimizer.lr: was 0.1, now 0.5 (command line)"))
      << "a registered class's field";
}

TEST_F(RunConfig, AChangeNamesWhereItIsWritten) {
  keep(Started({"checkpoint.keep_last=5", "exp_name=tiny"}));
  write("tiny.yaml", std::string(kConfig) + "log_dir_name: logs\n");
  write("more.yaml", "training:\n  max_steps: 9\n");
  EXPECT_THAT(changes(Started({"more.yaml", "exp_name=tiny"})),
              ElementsAre("training.max_steps: was 8, now 9 (more.yaml:2)",
                          "checkpoint.keep_last: was 5, now 3 (default)"));
}

TEST_F(RunConfig, AnEarlierOneMayNotDifferInAnythingElse) {
  keep(Started());
  const Started other({"training.seed=5", "training.max_steps=9", "model=parrot",
                       "use_double_weight_precision=true"});
  EXPECT_THAT(
      [&] { changes(other); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("run holds a run"),
                                     HasSubstr("training.seed: was 0, now 5 (command line)"),
                                     HasSubstr("model.name: was linear, now parrot"),
                                     HasSubstr("use_double_weight_precision: was false, now true"),
                                     Not(HasSubstr("max_steps")))));
}

TEST_F(RunConfig, AnEarlierOneMayDifferInWhatAnOverrideForces) {
  keep(Started());
  EXPECT_THAT(changes(Started({"++training.seed=5", "exp_name=tiny"})),
              ElementsAre("training.seed: was 0, now 5 (command line)"));
  const Started other({"++training.seed=5", "model=parrot", "exp_name=tiny"});
  EXPECT_THAT([&] { changes(other); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("model.name"), HasSubstr("++key=value"),
                                             Not(HasSubstr("seed")))));
}

TEST_F(RunConfig, AFieldThatTheProgramLearnedSinceIsNoChange) {
  keep(Started());
  std::string text = read("run/config.yaml");
  text.erase(text.find("  seed:"),
             text.find('\n', text.find("  seed:")) + 1 - text.find("  seed:"));
  write("run/config.yaml", text);
  EXPECT_THAT(changes(Started({"training.seed=5", "exp_name=tiny"})), IsEmpty());
}

TEST_F(RunConfig, AnotherTrainersIsComparedAsItIsWritten) {
  keep(Started());
  std::string text = read("run/config.yaml");
  write("run/config.yaml", text + "watching: {every: 5}\n");
  EXPECT_THAT(
      [] {
        changes(Started({"training.max_steps=9", "exp_name=tiny"}));
      },
      ThrowsMessage<UserError>(HasSubstr("watching: was {every: 5}, now (absent)")));
}

// Names another trainer in the config that is kept, and adds `sections`.
void keep_as_of_other_trainer(const std::string& text, const std::string& sections = "") {
  std::string other = text + sections;
  other.replace(other.find("\nname: tiny"), 11, "\nname: other");
  std::ofstream("run/config.yaml") << other;
}

TEST_F(RunConfig, ARunKeepsItsTrainerAndTheWaysOutAreTold) {
  keep(Started());
  const std::string text = read("run/config.yaml");
  keep_as_of_other_trainer(text);
  EXPECT_THAT([] { changes(Started({"exp_name=tiny"})); },
              ThrowsMessage<UserError>(AllOf(
                  HasSubstr("run holds a run of the trainer other, and name is tiny (tiny.yaml:1): "
                            "a run keeps its trainer, so write name=other. Go on by its own "
                            "config: "),
                  HasSubstr("run/config.yaml exp_dir=run\n"),
                  HasSubstr("\nOr insist with ++name=tiny, which has all fields of other"),
                  Not(HasSubstr("load_from")))))
      << "there are no weights yet";
  keep_as_of_other_trainer(text, "watching: {every: 5}\n");
  EXPECT_THAT([] { changes(Started({"exp_name=tiny"})); },
              ThrowsMessage<UserError>(Not(HasSubstr("insist"))));
  std::string with_field = text;
  with_field.insert(with_field.find("\ntraining:\n") + 11, "  no_such_field: 5\n");
  keep_as_of_other_trainer(with_field);
  EXPECT_THAT([] { changes(Started({"exp_name=tiny"})); },
              ThrowsMessage<UserError>(Not(HasSubstr("insist"))))
      << "no override makes a field absent";
  keep_as_of_other_trainer(text);
  EXPECT_THAT(changes(Started({"++name=tiny", "exp_name=tiny"})),
              ElementsAre("name: was other, now tiny (command line)"));
}

// As Phalanx 0.1.0 kept it before.
class OldRunConfig : public RunConfig {
 protected:
  OldRunConfig() {
    EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "task.fails_at=5"}).code, 1);
    std::string text = read("run/config.yaml");
    text.erase(0, text.find("name: "));
    text.replace(text.find("???"), 3, "run");
    write("run/config.yaml", text);
    fs::remove("run/starts.jsonl");
    fs::remove("run/run.lock");
  }
};

TEST_F(OldRunConfig, ContinuesByItselfAsItDid) {
  const Outcome outcome = run({"run/config.yaml", "task.fails_at=null"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("changed since the last start: task.fails_at: was 5, now "
                                        "null (command line)\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("exp_dir: was")));
  EXPECT_TRUE(fs::exists("run/checkpoints/step-00000008"));
  EXPECT_THAT(read("run/config.yaml"), HasSubstr("exp_dir: ???")) << "and is one of today's now";
  EXPECT_FALSE(fs::exists("runs"));
}

TEST_F(OldRunConfig, IsComparedWithANewStart) {
  EXPECT_EQ(earlier_exp_name("run"), "tiny.task.fails_at=5");
  EXPECT_THAT(run({"tiny.yaml", "exp_dir=run", "training.seed=5"}).errors,
              HasSubstr("training.seed: was 0, now 5 (command line)"));
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run"}).code, 0);
}

TEST_F(OldRunConfig, IsEvaluatedAndDiffed) {
  EXPECT_EQ(run({"evaluate", "run"}).code, 0);
  EXPECT_THAT(run({"config", "diff", "run", "tiny.yaml"}).output,
              AllOf(HasSubstr("exp_dir: run | ???"), HasSubstr("task.fails_at: 5 | null")));
}

TEST_F(RunConfig, PrintAndDiffShowReferencesToAFolderThatIsNotKnown) {
  const List arguments{"config", "print", "tiny.yaml", "log_dir_name=${exp_dir}/x"};
  EXPECT_THAT(run(arguments).output,
              AllOf(HasSubstr("exp_dir: ???"), HasSubstr("log_dir_name: \"${exp_dir}/x\"")));
  keep(Started({"log_dir_name=${exp_dir}/x"}));
  EXPECT_THAT(run({"config", "print", "run/config.yaml"}).output,
              HasSubstr("log_dir_name: \"${exp_dir}/x\""));
  EXPECT_THAT(run({"config", "diff", "run", "tiny.yaml"}).output,
              HasSubstr("log_dir_name: \"${exp_dir}/x\" | logs\n"));
}

TEST_F(RunConfig, DiffTakesCheckpointsForTheirRuns) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=other", "optimizer.lr=0.5"}).code, 0);
  for (const char* path : {"other", "other/checkpoints", "other/checkpoints/step-00000006/",
                           "other/checkpoints/latest"}) {
    EXPECT_EQ(run({"config", "diff", "tiny.yaml", path}).output,
              "# tiny.yaml | " + std::string(path) +
                  "\nexp_name: null | \"tiny.optimizer.lr=0.5\"\noptimizer.lr: 0.1 | 0.5\n");
  }
  const Outcome nothing = run({"config", "diff", "tiny.yaml", "."});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.errors, HasSubstr(". is no run"));
}

TEST_F(RunConfig, ANameThatRefersToTheFolderItNamesIsRefused) {
  const Outcome outcome = run({"tiny.yaml", "exp_name=my_${exp_dir}"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("exp_name refers to exp_dir"));
  EXPECT_EQ(run({"tiny.yaml", "exp_name=my_${exp_dir}", "exp_dir=given"}).code, 0);
}

}  // namespace
}  // namespace phalanx::tiny
