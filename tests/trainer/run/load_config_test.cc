// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/load_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"

namespace phalanx::tiny {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using List = std::vector<std::string>;

class LoadConfig : public CommandTest {
 protected:
  static std::string name_of(const List& arguments) {
    return experiment_name(load_config(arguments));
  }
};

TEST_F(LoadConfig, ReadsTheFileAndTheOverrides) {
  const UserConfig user =
      load_config(List{"tiny.yaml", "training.max_steps=3", "optimizer.lr=0.5"});
  EXPECT_EQ(user.trainer, "tiny");
  ASSERT_NE(user.entry, nullptr);
  const config::Node resolved = resolve_config(user, "somewhere");
  EXPECT_EQ(resolved.find_path("training.max_steps")->text, "3");
  EXPECT_EQ(resolved.find_path("training.batch_size")->text, "4");
  EXPECT_EQ(resolved.find_path("optimizer.lr")->text, "0.5");
  EXPECT_EQ(resolved.find_path("lr_scheduler.name")->text, "constant") << "a default";
  EXPECT_EQ(resolved.find_path("checkpoint.keep_last")->text, "3") << "another one";
}

TEST_F(LoadConfig, TheNameIsTheStemAndTheSortedOverrides) {
  EXPECT_EQ(name_of({"tiny.yaml"}), "tiny");
  write("deeper/other.v2.yaml", kConfig);
  EXPECT_EQ(name_of({"deeper/other.v2.yaml"}), "other.v2");
  EXPECT_EQ(name_of({"tiny.yaml", "training.max_steps=3", "optimizer.lr=0.5"}),
            "tiny.optimizer.lr=0.5.training.max_steps=3");
  EXPECT_EQ(name_of({"tiny.yaml", "optimizer.lr=0.5", "training.max_steps=3"}),
            name_of({"tiny.yaml", "training.max_steps=3", "optimizer.lr=0.5"}));
}

TEST_F(LoadConfig, WhereARunIsDoesNotNameIt) {
  EXPECT_EQ(name_of({"tiny.yaml", "exp_dir=/somewhere/else"}), "tiny");
  EXPECT_EQ(name_of({"tiny.yaml", "exp_name=mine"}), "mine");
  EXPECT_EQ(name_of({"tiny.yaml", "exp_name=null", "optimizer.lr=1.0"}), "tiny.optimizer.lr=1.0");
}

TEST_F(LoadConfig, TheNameIsAFoldersName) {
  EXPECT_EQ(name_of({"tiny.yaml", "model={name: linear, dropout: 0.5}"}),
            "tiny.model=_name__linear,_dropout__0.5_");
  EXPECT_EQ(name_of({"tiny.yaml", "log_dir_name=a/../b c"}), "tiny.log_dir_name=a_.._b_c");
  EXPECT_THAT(name_of({"tiny.yaml", "log_dir_name=" + std::string(500, 'x')}), SizeIs(200));
}

TEST_F(LoadConfig, TheNameMayReferToOtherFields) {
  EXPECT_EQ(name_of({"tiny.yaml", "exp_name=run_of_${training.batch_size}"}), "run_of_4");
}

TEST_F(LoadConfig, ANameThatIsNoFoldersIsRefusedWhereItIsGiven) {
  for (const std::string name :
       {"''", "'.'", "'..'", "a/b", "/a", "a/../../b", "${log_dir_name}"}) {
    const UserConfig user =
        load_config(List{"tiny.yaml", "exp_name=" + name, "log_dir_name=deep/logs"});
    EXPECT_THAT([&] { checked_config(user); },
                ThrowsMessage<UserError>(
                    AllOf(HasSubstr("command line, argument 'exp_name="), HasSubstr("exp_name: "),
                          HasSubstr("give a plain name, or choose a folder by exp_dir"))))
        << name;
  }
  write("lines.yaml", std::string(kConfig) + "exp_name: \"a\\nb\"\n");
  EXPECT_THAT([] { name_of({"lines.yaml"}); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("lines.yaml:"), HasSubstr("control"))));
  for (const std::string name : {"...", ".a", "a, b", "a..b"}) {
    EXPECT_EQ(name_of({"tiny.yaml", "exp_name='" + name + "'"}), name);
  }
}

TEST_F(LoadConfig, BesideAFolderOfItsOwnANameIsFree) {
  const UserConfig user = load_config(List{"tiny.yaml", "exp_name=a/b", "exp_dir=given"});
  EXPECT_EQ(checked_config(user).find("exp_name")->text, "a/b");
}

TEST_F(LoadConfig, AResolvedConfigKnowsItsRun) {
  const UserConfig user = load_config(List{"tiny.yaml"});
  const config::Node resolved = resolve_config(user, "runs/tiny/run_0");
  EXPECT_EQ(resolved.find("exp_dir")->text, "runs/tiny/run_0");
  EXPECT_EQ(resolved.find("exp_name")->text, "tiny");
  EXPECT_TRUE(resolve_config(user, std::nullopt).find("exp_dir")->is_missing());
}

TEST_F(LoadConfig, MistakesSayWhereTheyAre) {
  EXPECT_THROW(load_config(List{}), UserError);
  EXPECT_THAT([] { load_config(List{"none.yaml"}); },
              ThrowsMessage<UserError>(HasSubstr("none.yaml")));
  write("unnamed.yaml", "training: {max_steps: 1}\n");
  EXPECT_THAT([] { load_config(List{"unnamed.yaml"}); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("name"), HasSubstr("tiny"))));
  EXPECT_THAT(
      [] {
        load_config(List{"tiny.yaml", "name=tidy"});
      },
      ThrowsMessage<UserError>(
          HasSubstr("unknown trainer 'tidy'; did you mean 'tiny'? There are: tiny")));
  write("wrong.yaml", "name: tiny\ntraining:\n  max_step: 1\n  batch_size: 0\n");
  const UserConfig wrong = load_config(List{"wrong.yaml"});
  EXPECT_THAT([&] { resolve_config(wrong, "x"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("wrong.yaml:3"), HasSubstr("max_steps"),
                                             HasSubstr("wrong.yaml:4"), HasSubstr("task"))));
}

}  // namespace
}  // namespace phalanx::tiny
