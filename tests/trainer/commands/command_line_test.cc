// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/registry/trainers.h"
#include "trainer/run/errors.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class CommandLine : public CommandTest {};

TEST_F(CommandLine, WithoutArgumentsTellsHowToUseIt) {
  const Outcome nothing = run({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.output, StartsWith("usage: trainer [train] CONFIG"));
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.output, nothing.output);
}

TEST_F(CommandLine, HelpIsTheSameHoweverItIsAskedFor) {
  const std::string of_program = run({"--help"}).output;
  EXPECT_EQ(run({"-h"}).output, of_program);
  EXPECT_EQ(run({"help"}).output, of_program);
  const Outcome of_action = run({"config", "print", "--help"});
  EXPECT_EQ(of_action.code, 0);
  EXPECT_THAT(of_action.output, StartsWith("usage: trainer config print CONFIG"));
  EXPECT_EQ(run({"help", "config", "print"}).output, of_action.output);
  EXPECT_EQ(run({"config", "print", "tiny.yaml", "-h"}).output, of_action.output);
  EXPECT_THAT(run({"config", "--help"}).output, HasSubstr("\nactions:\n  print "));
  EXPECT_EQ(run({"help", "confg"}).code, 2);
}

TEST_F(CommandLine, TellsItsVersion) {
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.output, MatchesRegex("phalanx [0-9.]+, commit unknown\n"
                                           "LibTorch 2[.][0-9]+[.][0-9]+\n"
                                           "CUDA [0-9]+[.][0-9]+\n"
                                           "NCCL 2[.][0-9]+[.][0-9]+\n"))
      << "no commit is linked into this test";
}

TEST_F(CommandLine, UnknownOptionsAreRefused) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--verbose", "tiny.yaml"}, {"tiny.yaml", "--verbose"}, {"train", "--verbose"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.errors, AllOf(StartsWith("error: "), HasSubstr("'--verbose'")));
  }
}

// Whether help names a field's path and, below a section or choice, all that it holds.
void expect_told(const std::string& help, const config::Declaration& declaration,
                 const std::string& section) {
  for (const config::Field& field : declaration.fields()) {
    const std::string path = config::join_path(section, field.name);
    if (field.type.choice) {
      EXPECT_THAT(help, HasSubstr("\n" + path + ".name  ("));
      for (const auto& name : field.type.choice->names()) {
        EXPECT_THAT(help, HasSubstr(name));
        expect_told(help, *field.type.choice->find(name), path);
      }
    } else {
      EXPECT_THAT(help, HasSubstr("\n" + path + "  ("));
      if (field.type.section != nullptr) expect_told(help, *field.type.section, path);
    }
  }
}

TEST_F(CommandLine, HelpListsEveryFieldOfEveryRegisteredClass) {
  const Outcome help = run({"train", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, StartsWith("usage: trainer train CONFIG"));
  expect_told(help.output, TrainerRegistry::instance().at("tiny").declaration(), "");
  EXPECT_THAT(help.output, AllOf(HasSubstr("training.clip_grad_norm"), HasSubstr("task.fails_at"),
                                 HasSubstr("model.dropout"), HasSubstr("optimizer.lr")));
  EXPECT_EQ(run({"tiny.yaml", "--help"}).output, help.output) << "train is the default";
}

TEST_F(CommandLine, ListTellsWhatIsRegisteredAndWhatIsKnownOfIt) {
  const Outcome all = run({"list"});
  EXPECT_EQ(all.code, 0);
  const std::string models = "models:\n  linear  offers Regressor\n  parrot  offers Speaker\n";
  EXPECT_THAT(all.output,
              AllOf(HasSubstr("trainers:\n  tiny  sections training, about, checkpoint\n"),
                    HasSubstr("tasks:\n  regression  needs Regressor\n"), HasSubstr(models)));
  EXPECT_EQ(run({"list", "models"}).output, models);
  EXPECT_EQ(run({"list", "model"}).output, models);
  EXPECT_EQ(run({"list", "lr_schedulers"}).output, "lr_schedulers:\n  constant\n");
}

TEST_F(CommandLine, ListTellsTheFieldsOfOne) {
  const Outcome model = run({"list", "models", "linear"});
  EXPECT_EQ(model.code, 0);
  EXPECT_EQ(model.output,
            "model linear\n  offers Regressor\n\n"
            "dropout  (a real number in [0, 1); default 0.0)\n    of rows\n");
  EXPECT_THAT(run({"list", "trainers", "tiny"}).output,
              AllOf(StartsWith("trainer tiny\n"), HasSubstr("\ntraining.max_steps  (")));
  EXPECT_EQ(run({"list", "models", "parrot"}).output, "model parrot\n  offers Speaker\n");
}

TEST_F(CommandLine, WhatIsNotToBeListedIsRefusedWithTheNearest) {
  const Outcome kind = run({"list", "modles"});
  EXPECT_EQ(kind.code, 2);
  EXPECT_THAT(kind.errors, HasSubstr("did you mean 'models'? There are: models, "));
  const Outcome name = run({"list", "models", "liner"});
  EXPECT_EQ(name.code, 2);
  EXPECT_THAT(name.errors, HasSubstr("did you mean 'linear'? There are: linear, "));
  EXPECT_THAT(run({"list", "linear"}).errors,
              HasSubstr("'linear' is a model, not a kind: list models linear"));
}

TEST_F(CommandLine, ARunsFolderStandsForItsConfig) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=here"}).code, 0);
  EXPECT_EQ(run({"config", "print", "here", "optimizer.lr=0.5", "--json"}).output,
            run({"config", "print", "here/config.yaml", "optimizer.lr=0.5", "--json"}).output);
  EXPECT_EQ(run({"config", "diff", "here", "here", "optimizer.lr=0.5"}).output,
            "# here | here with optimizer.lr=0.5\noptimizer.lr: 0.1 | 0.5\n");
  EXPECT_EQ(run({"config", "diff", "here", "here/config.yaml"}).output,
            "# here | here/config.yaml\n# no field differs\n");
  EXPECT_EQ(run({"config", "diff", "here", "here", "tiny.yaml"}).code, 2);
}

TEST_F(CommandLine, ConfigPrintShowsAllOfItAndWhereItComesFrom) {
  const Outcome outcome = run({"config", "print", "tiny.yaml", "optimizer.lr=0.5"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("lr: 0.5  # command line"), HasSubstr("batch_size: 4  # tiny.yaml:2"),
                    HasSubstr("keep_last: 3  # default")));
  EXPECT_THAT(run({"config", "print", "tiny.yaml", "--json"}).output, StartsWith("{"));
  EXPECT_THAT(run({"config", "print", "--minimal", "tiny.yaml"}).output,
              Not(HasSubstr("keep_last")));
  EXPECT_EQ(run({"config", "print"}).code, 2);
  const Outcome no_action = run({"config"});
  EXPECT_EQ(no_action.code, 2);
  EXPECT_THAT(no_action.errors, StartsWith("error: an action is missing: trainer config print|"));
  EXPECT_THAT(dir_.names("."), ElementsAre("tiny.yaml")) << "and writes nothing";
}

TEST_F(CommandLine, TrainingSucceedsWithZero) {
  const Outcome outcome = run({"tiny.yaml"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.errors, IsEmpty());
  EXPECT_TRUE(fs::exists("runs/tiny/run_0/config.yaml"));
  EXPECT_TRUE(fs::exists("runs/tiny/run_0/checkpoints/step-00000008/manifest.json"));
  EXPECT_EQ(run({"train", "tiny.yaml"}).code, 0);
  EXPECT_TRUE(fs::exists("runs/tiny/run_1")) << "a new command is a new run";
}

TEST_F(CommandLine, ComputesAsTheConfigSays) {
  const at::Context& context = at::globalContext();
  ::unsetenv("CUBLAS_WORKSPACE_CONFIG");
  EXPECT_EQ(
      run({"tiny.yaml", "training.deterministic=true", "training.float32_matmul_precision=medium"})
          .code,
      0);
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_EQ(context.float32MatmulPrecision(), at::Float32MatmulPrecision::MEDIUM);
  EXPECT_STREQ(std::getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8") << "before CUDA is there";
  EXPECT_EQ(run({"tiny.yaml"}).code, 0);
  EXPECT_FALSE(context.deterministicAlgorithms());
  EXPECT_EQ(context.float32MatmulPrecision(), at::Float32MatmulPrecision::HIGHEST);
  ::unsetenv("CUBLAS_WORKSPACE_CONFIG");
}

TEST_F(CommandLine, TasksOfAJobThatIdleAreToldOnce) {
  setenv("SLURM_JOB_ID", "1", 1);
  setenv("SLURM_NTASKS", "2", 1);
  const Outcome training = run({"tiny.yaml", "exp_dir=here"});
  const Outcome evaluation = run({"evaluate", "here"});
  unsetenv("SLURM_JOB_ID");
  unsetenv("SLURM_NTASKS");
  for (const Outcome& outcome : {training, evaluation}) {
    const std::string warning = "warning: this Slurm job has 2 tasks";
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.errors, StartsWith(warning));
    EXPECT_EQ(outcome.errors.find(warning, 1), std::string::npos) << outcome.errors;
    EXPECT_THAT(outcome.errors, HasSubstr("\n  srun -K "));
  }
}

TEST_F(CommandLine, AUsersMistakeIsTwoAndLeavesNothing) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"none.yaml"},
                                             {"tiny.yaml", "training.max_step=3"},
                                             {"tiny.yaml", "training.max_steps=many"},
                                             {"tiny.yaml", "training.global_batch_size=6"},
                                             {"tiny.yaml", "task.samples=0"},
                                             {"tiny.yaml", "optimizer=descend"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments.back();
    EXPECT_THAT(outcome.errors, StartsWith("error: "));
    EXPECT_THAT(outcome.output, IsEmpty());
  }
  EXPECT_THAT(dir_.names("."), ElementsAre("tiny.yaml"));
}

TEST_F(CommandLine, AFailureIsOneAndNamesTheStepFirst) {
  const Outcome outcome = run({"tiny.yaml", "task.fails_at=5"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors,
              StartsWith("error: step 5: the task failed\n4 steps were finished; the newest "
                         "checkpoint is step-00000004; mend the cause first\nnext: "));
  EXPECT_THAT(outcome.errors, EndsWith("runs/tiny.task.fails_at=5/run_0/config.yaml "
                                       "exp_dir=runs/tiny.task.fails_at=5/run_0\n"));
}

TEST_F(CommandLine, ASignalIsTold) {
  const Outcome outcome = run({"tiny.yaml", "task.raises_at=3"});
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  EXPECT_THAT(dir_.names("runs/tiny.task.raises_at=3/run_0/checkpoints"),
              ElementsAre("latest", "step-00000002", "step-00000003"));
}

TEST_F(CommandLine, WithItsFolderARunGoesOn) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=here", "task.fails_at=5"}).code, 1);
  const Outcome resumed = run({"tiny.yaml", "exp_dir=here"});
  EXPECT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_THAT(resumed.output,
              HasSubstr("changed since the last start: task.fails_at: was 5, now null"));
  EXPECT_TRUE(fs::exists("here/checkpoints/step-00000008"));
  EXPECT_FALSE(fs::exists("runs"));
}

TEST_F(CommandLine, WithoutItANewRunSaysHowToGoOn) {
  EXPECT_EQ(run({"tiny.yaml", "exp_name=mine", "task.fails_at=5"}).code, 1);
  const Outcome again = run({"tiny.yaml", "exp_name=mine"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.output, HasSubstr("runs/mine/run_0 is unfinished at step 4; "));
  EXPECT_THAT(again.output,
              HasSubstr(" runs/mine/run_0/config.yaml exp_dir=runs/mine/run_0 continues it"));
  EXPECT_TRUE(fs::exists("runs/mine/run_1"));
}

TEST_F(CommandLine, WhatMayNotChangeUnderARunIsRefused) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=here"}).code, 0);
  const std::string config = read("here/config.yaml");
  const Outcome outcome = run({"tiny.yaml", "exp_dir=here", "training.batch_size=5"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("Set training.batch_size to one that fits: 4, 2, 1"));
  EXPECT_EQ(read("here/config.yaml"), config);
}

TEST_F(CommandLine, AMistakeBeforeTheFirstStepIsNoSteps) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=here"}).code, 0);
  const Outcome outcome = run({"tiny.yaml", "exp_dir=here", "checkpoint.resume=never"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("here holds checkpoints"), Not(HasSubstr("step 0"))));
}

TEST_F(CommandLine, AModelThatATaskCannotDriveIsRefusedWithThoseItCan) {
  const Outcome outcome = run({"tiny.yaml", "model=parrot"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("task 'regression'"), HasSubstr("interface Regressor"),
                    HasSubstr("model 'parrot'"), HasSubstr("models that do: linear")));
  EXPECT_THAT(dir_.names("."), ElementsAre("tiny.yaml"));
}

TEST_F(CommandLine, EvaluatesARunOrACheckpoint) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=here"}).code, 0);
  const Outcome of_run = run({"evaluate", "here"});
  EXPECT_EQ(of_run.code, 0) << of_run.errors;
  EXPECT_THAT(of_run.output,
              AllOf(HasSubstr("(step 8)"), HasSubstr("  loss "), HasSubstr("twice")));
  const Outcome of_earlier = run({"evaluate", "here/checkpoints/step-00000006"});
  EXPECT_EQ(of_earlier.code, 0) << of_earlier.errors;
  EXPECT_THAT(of_earlier.output, HasSubstr("(step 6)"));
  EXPECT_EQ(run({"evaluate"}).code, 2);
  EXPECT_EQ(run({"evaluate", "nowhere"}).code, 2);
}

TEST_F(CommandLine, PathsAreRelativeToWhereTheUserStands) {
  fs::create_directory("elsewhere");
  write("elsewhere/own.yaml", kConfig);
  setenv("BUILD_WORKING_DIRECTORY", (dir_.path() / "elsewhere").c_str(), 1);
  const Outcome outcome = run({"own.yaml"});
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(fs::exists(dir_.path() / "elsewhere/runs/own/run_0"));
}

TEST(Errors, TheStepComesBeforeTheCauseAndTheKindStays) {
  const auto rethrown = [](auto error, long step) {
    try {
      try {
        throw error;
      } catch (...) {
        rethrow_with_step(step);
      }
    } catch (const UserError& user) {
      return std::string("user: ") + user.what();
    } catch (const std::exception& other) {
      return std::string("other: ") + other.what();
    }
  };
  EXPECT_EQ(rethrown(UserError("no data"), 4), "user: step 4: no data");
  EXPECT_EQ(rethrown(std::logic_error("broken"), 4), "other: step 4: broken");
  EXPECT_EQ(rethrown(UserError("no data"), 0), "user: no data");
  EXPECT_EQ(rethrown(std::runtime_error("rank 1: no space"), 4), "other: rank 1: step 4: no space");
}

}  // namespace
}  // namespace phalanx::tiny
