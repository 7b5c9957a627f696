// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// In a folder that holds tiny.yaml, and "source", which looks like Phalanx's.
class New : public CommandTest {
 protected:
  New() {
    unsetenv("BUILD_WORKSPACE_DIRECTORY");
    write("source/trainer/api/task.h", "");
  }

  static Outcome make(const std::string& kind, const std::string& name,
                      const std::string& flag = "--phalanx=source") {
    return run({"new", kind, name, flag});
  }

  static std::vector<std::string> files() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(".")) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(New, WritesAClassItsTestAConfigAndAWorkspace) {
  for (const char* const kind : {"task", "model", "optimizer", "lr_scheduler", "sink", "mixin"}) {
    const Outcome made = make(kind, "count_words");
    EXPECT_EQ(made.code, 0) << made.errors;
    EXPECT_THAT(files(),
                ElementsAre("BUILD", "WORKSPACE", "count_words.cc", "count_words.h",
                            "count_words.yaml", "count_words_test.cc", "source", "tiny.yaml"));
    EXPECT_THAT(read("count_words.h"), HasSubstr("CountWords"));
    for (const std::string& name : files()) {
      if (fs::is_directory(name) || name == "tiny.yaml") continue;
      for (const char* const placeholder : {"keleton", "TARGETS", "PHALANX"}) {
        EXPECT_THAT(read(name), Not(HasSubstr(placeholder))) << name;
      }
      fs::remove(name);
    }
    EXPECT_THAT(made.output,
                HasSubstr(fs::canonical("source").string() + "/bazelw test //:count_words_test\n"));
    EXPECT_THAT(made.output, HasSubstr("bazel-bin/trainer count_words.yaml\n"));
  }
}

TEST_F(New, WritesATaskOfAKindWithItsTable) {
  for (const std::string kind : {"classification", "regression"}) {
    const Outcome made =
        run({"new", "task", "prices_" + kind, "--kind=" + kind, "--phalanx=source"});
    EXPECT_EQ(made.code, 0) << made.errors;
    EXPECT_THAT(read("prices_" + kind + ".csv"), HasSubstr("x,y,label\n"));
    EXPECT_THAT(read("prices_" + kind + ".yaml"), HasSubstr("path: prices_" + kind + ".csv"));
    for (const std::string end : {".h", ".cc", "_test.cc", ".csv", ".yaml"}) {
      for (const char* const mark : {"⟨", "¦", "⟩"}) {
        EXPECT_THAT(read("prices_" + kind + end), Not(HasSubstr(mark))) << end;
      }
    }
  }
  // Two kinds of one text, each with what is its own.
  EXPECT_THAT(read("prices_classification.csv"), HasSubstr("\n0.246,0.484,1\n"));
  EXPECT_THAT(read("prices_regression.csv"), HasSubstr("\n0.246,0.484,0.2418\n"));
  const std::string loss = "= at::cross_entropy_loss(";
  EXPECT_THAT(read("prices_classification.cc"), HasSubstr(loss));
  EXPECT_THAT(read("prices_regression.cc"), AllOf(Not(HasSubstr(loss)), HasSubstr("mse_loss(")));
  const Outcome refused = run({"new", "model", "table", "--kind=regression", "--phalanx=source"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--kind is of a task"));
}

TEST_F(New, WritesATaskWithItsOwnTrainingStep) {
  for (const std::string kind : {"language", "classification", "regression"}) {
    const std::string with = "with_" + kind;
    const std::string without = "without_" + kind;
    const Outcome made =
        run({"new", "task", with, "--kind=" + kind, "--own-step", "--phalanx=source"});
    EXPECT_EQ(made.code, 0) << made.errors;
    run({"new", "task", without, "--kind=" + kind, "--phalanx=source"});
    for (const std::string end : {".h", ".cc"}) {
      EXPECT_THAT(read(with + end), HasSubstr("training_step(phalanx::TrainingStep& step"));
      EXPECT_THAT(read(without + end), Not(HasSubstr("training_step")));
      for (const char* const mark : {"⟦", "⟧"}) {
        EXPECT_THAT(read(with + end), Not(HasSubstr(mark)));
        EXPECT_THAT(read(without + end), Not(HasSubstr(mark)));
      }
    }
  }
  const Outcome refused = run({"new", "model", "table", "--own-step", "--phalanx=source"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--own-step is for a task only"));
}

TEST_F(New, ChangesNoBuildFileAndPrintsWhatBelongsThere) {
  write("WORKSPACE", "mine");
  write("BUILD", "also mine");
  const Outcome made = make("model", "table");
  EXPECT_EQ(made.code, 0) << made.errors;
  EXPECT_EQ(read("WORKSPACE"), "mine");
  EXPECT_EQ(read("BUILD"), "also mine");
  EXPECT_THAT(made.output, HasSubstr("\":table\" to the deps of its trainer_binary:\n"));
  EXPECT_THAT(made.output, HasSubstr("    srcs = [\"table_test.cc\"],\n"));
}

TEST_F(New, FindsTheSourceAboveTheFolder) {
  fs::create_directories("source/my/own");
  fs::current_path("source/my/own");
  const Outcome below = run({"new", "task", "table"});
  EXPECT_EQ(below.code, 0) << below.errors;
  EXPECT_THAT(below.output, HasSubstr("\n  " + fs::canonical("../..").string() + "/bazelw test"));
}

TEST_F(New, OverwritesNothing) {
  write("table.yaml", "mine");
  const Outcome refused = make("model", "table");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("'table.yaml' exists: nothing was written"));
  EXPECT_EQ(read("table.yaml"), "mine");
  EXPECT_THAT(files(), ElementsAre("source", "table.yaml", "tiny.yaml"));
}

TEST_F(New, RefusesNamesThatCannotBe) {
  for (const char* const name : {"", "Table", "2nd", "a-b", "a/b", "_a", "täble"}) {
    const Outcome refused = make("model", name);
    EXPECT_EQ(refused.code, 2) << name;
    EXPECT_THAT(refused.errors, HasSubstr("cannot be a name")) << name;
  }
  EXPECT_THAT(make("task", "trainer").errors, HasSubstr("the name of the program"));
  EXPECT_THAT(make("model", "linear").errors, HasSubstr("there is a model 'linear' already"));
  EXPECT_THAT(make("mixin", "tiny").errors, HasSubstr("there is a trainer 'tiny' already"));
  for (const char* const key : {"training", "model", "name"}) {
    const Outcome refused = make("mixin", key);
    EXPECT_EQ(refused.code, 2) << key;
    EXPECT_THAT(refused.errors, HasSubstr(std::string("a config has the key '") + key + "'"));
  }
  EXPECT_THAT(files(), ElementsAre("source", "tiny.yaml"));
}

TEST_F(New, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(
      make("launcher", "table").errors,
      HasSubstr("KIND is task, model, optimizer, lr_scheduler, sink, mixin, not 'launcher'"));
  EXPECT_THAT(make("task", "table", "--phalanx=.").errors,
              HasSubstr("'.' does not hold the source of Phalanx"));
  fs::current_path("source");
  const Outcome inside = run({"new", "task", "table"});
  EXPECT_EQ(inside.code, 2);
  EXPECT_THAT(inside.errors, HasSubstr("go to a folder of your own"));
}

}  // namespace
}  // namespace phalanx::tiny
