// SPDX-License-Identifier: Apache-2.0
// Runs of a task that owns modules (judging.cc): on ranks, through checkpoints, and in commands.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trainer/mixins/run_dir.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/commands/command_line.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr const char* kConfig = R"(
name: supervised
task: judging
model: {name: gpt2, vocab_size: 16, n_positions: 8, n_embd: 8, n_layer: 2, n_head: 2,
        embd_pdrop: 0, attn_pdrop: 0, resid_pdrop: 0}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
training: {max_steps: 6, batch_size: 2, gradient_accumulation_steps: 2, clip_grad_norm: 0.5}
checkpoint: {save_every_n_steps: 3, keep_last: null}
compute: {gemm: default}
use_double_weight_precision: true
)";

using Arguments = std::vector<std::string>;
using Tensors = std::map<std::string, at::Tensor>;

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const Arguments kTwo{"launcher.processes=2", "training.gradient_accumulation_steps=1"};
const Arguments kFull =
    with(kTwo, {"parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD"});
const Arguments kFour{"launcher.processes=4", "training.gradient_accumulation_steps=1",
                      "training.batch_size=1"};

class TaskModulesInRuns : public ::testing::Test {
 protected:
  // All stand in one folder: they share the runs that several need.
  static void SetUpTestSuite() {
    dir_ = std::make_unique<tiny::RunDir>();
    stood_ = fs::current_path();
    fs::current_path(dir_->path());
    std::ofstream("judged.yaml") << kConfig;
  }
  static void TearDownTestSuite() {
    fs::current_path(stood_);
    dir_.reset();
  }

  struct Outcome {
    int code = 0;
    std::string text;  // Output and errors.
  };

  // Runs `trainer ARGUMENTS` in a process: what computes must not start others.
  static Outcome run(Arguments arguments) {
    arguments.insert(arguments.begin(), "trainer");
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    const pid_t child = ::fork();
    if (child == 0) {
      const int file = ::open("said.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
      const int code = run_command_line(static_cast<int>(argv.size()), argv.data());
      ::fflush(nullptr);
      ::_exit(code);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::stringstream text;
    text << std::ifstream("said.txt").rdbuf();
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .text = text.str()};
  }

  // Trains in a folder; returns what is said.
  static std::string train(const std::string& folder, const Arguments& overrides = {}) {
    const Outcome outcome = run(with({"judged.yaml", "exp_dir=" + folder}, overrides));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return outcome.text;
  }

  // Trains until step 5, whose loss throws; the checkpoint of step 3 is there.
  static void train_and_fail(const std::string& folder, const Arguments& overrides = {}) {
    const Outcome outcome =
        run(with({"judged.yaml", "exp_dir=" + folder, "task.fails_at=5"}, overrides));
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("the task failed"));
  }

  static fs::path checkpoint(const std::string& folder, int64_t step) {
    return fs::path(folder) / "checkpoints" / ("step-0000000" + std::to_string(step));
  }

  static Tensors tensors_in(const Checkpoint& source) {
    Tensors tensors;
    std::vector<ShardedTensorView> views;
    for (const ManifestTensor& tensor : source.manifest.tensors) {
      if (tensor.part != kModelPart) continue;
      tensors[tensor.name] = tensors::empty(tensor.shape, tensor.dtype);
      views.push_back(whole_tensor(tensor.name, tensors[tensor.name]));
    }
    load_model(source, views);
    return tensors;
  }

  static Tensors weights(const std::string& folder, int64_t step = 6) {
    return tensors_in(open_checkpoint(checkpoint(folder, step)));
  }

  static std::vector<std::string> names(const Tensors& tensors) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors) names.push_back(name);
    return names;
  }

  // The largest difference of any tensor, of which both have the same.
  static double difference(const Tensors& left, const Tensors& right) {
    EXPECT_EQ(names(left), names(right));
    double most = 0;
    for (const auto& [name, tensor] : left) {
      if (!right.contains(name)) continue;
      most = std::max(most, tensor.sub(right.at(name)).abs().max().item().toDouble());
    }
    return most;
  }

  // Runs that are there: of one rank, of FULL_SHARD on two, and of the task without modules.
  static void train_one() {
    if (!fs::exists("one")) said_of_one_ = train("one");
  }
  static void train_full() {
    if (!fs::exists("full")) train("full", kFull);
  }
  static void train_plain() {
    if (!fs::exists("plain")) train("plain", {"task=plain"});
  }
  static const std::string& said_of_one() { return said_of_one_; }

 private:
  inline static std::unique_ptr<tiny::RunDir> dir_;
  inline static fs::path stood_;
  inline static std::string said_of_one_;
};

constexpr double kRounding = 1e-12;

TEST_F(TaskModulesInRuns, AreTrainedAlikeOnAnyRanks) {
  train_one();
  EXPECT_THAT(said_of_one(),
              AllOf(HasSubstr("critic: 68 parameters"), HasSubstr("head: 5 parameters"),
                    HasSubstr("teacher: 289 parameters, not trained")));
  const Tensors one = weights("one");
  EXPECT_THAT(names(one), IsSupersetOf({"task.critic.linear.weight", "task.head.weight",
                                        "task.teacher.layer.linear.weight",
                                        "task.teacher.layer.scale", "task.teacher.out.bias"}));
  const Tensors before = weights("one", 3);
  for (const auto& [name, tensor] : one) {
    const bool is_still = name.starts_with("task.teacher.");
    EXPECT_EQ(tensor.equal(before.at(name)), is_still) << name;
  }
  train("ddp", kTwo);
  EXPECT_LT(difference(weights("ddp"), one), kRounding);
  train_full();
  EXPECT_LT(difference(weights("full"), one), kRounding);
  train("hybrid", with(kFour, {"parallel.use_fsdp=true", "parallel.sharding_strategy=HYBRID_SHARD",
                               "parallel.fsdp.shard_group_size=2"}));
  EXPECT_LT(difference(weights("hybrid"), one), kRounding);
}

TEST_F(TaskModulesInRuns, AreResumedBitForBitAndOnOtherRanks) {
  train_full();
  train_and_fail("cut", kFull);
  fs::copy("cut", "cut_too", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const Arguments on{"task.fails_at=null"};
  train("cut", with(kFull, on));
  EXPECT_EQ(difference(weights("cut"), weights("full")), 0);
  train("cut_too", on);
  EXPECT_LT(difference(weights("cut_too"), weights("full")), kRounding);
}

TEST_F(TaskModulesInRuns, AreUsedByWhatEvaluatesAndPredicts) {
  train_one();
  const Outcome evaluated = run({"evaluate", "one"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.text;
  EXPECT_THAT(evaluated.text, HasSubstr("judged"));
  std::ofstream("any") << "nothing";
  const Outcome predicted = run({"predict", "one", "any", "--output=values.jsonl"});
  EXPECT_EQ(predicted.code, 0) << predicted.text;
  std::stringstream values;
  values << std::ifstream("values.jsonl").rdbuf();
  EXPECT_THAT(values.str(), HasSubstr("\"value\":"));
}

TEST_F(TaskModulesInRuns, AreNothingToWhatUsesTheModelAlone) {
  train_one();
  std::ofstream("prompts.jsonl") << R"({"prompt_token_ids": [1, 2]})"
                                 << "\n";
  const Outcome written =
      run({"generate", "one", "--input=prompts.jsonl", "--output=texts.jsonl", "max_new_tokens=3"});
  EXPECT_EQ(written.code, 0) << written.text;

  const Outcome exported = run({"checkpoint", "export", "one", "exported"});
  EXPECT_EQ(exported.code, 0) << exported.text;
  const Checkpoint folder = open_safetensors_model("exported");
  const Tensors model = tensors_in(folder);
  EXPECT_TRUE(model.contains("transformer.wte.weight"));
  for (const auto& [name, tensor] : model) EXPECT_THAT(name, Not(HasSubstr("task"))) << name;
  EXPECT_TRUE(model.at("transformer.wte.weight").equal(weights("one").at("wte.weight")));

  const Outcome evaluated = run({"evaluate", "one", "task=plain"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.text;
  EXPECT_THAT(run({"evaluate", "exported", "task.name=judging"}).text,
              HasSubstr("holds a model alone, and the task computes with task.critic, task.head, "
                        "task.teacher"));
}

TEST_F(TaskModulesInRuns, BeginAnewWhereAFirstModelLacksThem) {
  train_plain();
  const std::string said = train("judged", {"checkpoint.load_from=plain", "training.max_steps=3"});
  EXPECT_THAT(said, HasSubstr("has nothing of task.critic: it is initialised"));
  EXPECT_THAT(said, Not(HasSubstr("missing model tensor")));

  // What a run of the task has, the next one takes.
  const std::string next =
      train("next", {"checkpoint.load_from=judged", "training.max_steps=3", "optimizer.lr=0"});
  EXPECT_THAT(next, Not(HasSubstr("initialised")));
  EXPECT_EQ(difference(weights("next", 3), weights("judged", 3)), 0);

  // And leaves it there where the task has no use for it.
  const std::string back = train("back", {"checkpoint.load_from=judged", "task=plain",
                                          "training.max_steps=3", "optimizer.lr=0"});
  EXPECT_THAT(back, HasSubstr("task.teacher of 'judged"));
  EXPECT_TRUE(weights("back", 3).at("wte.weight").equal(weights("judged", 3).at("wte.weight")));
}

TEST_F(TaskModulesInRuns, MayNameWeightsToBeginWith) {
  train_one();
  Tensors teacher;
  for (const auto& [name, tensor] : weights("one")) {
    const std::string prefix = "task.teacher.";
    if (name.starts_with(prefix)) teacher[name.substr(prefix.size())] = tensor.add(0.25);
  }
  std::vector<ShardedTensorView> views;
  for (const auto& [name, tensor] : teacher) views.push_back(whole_tensor(name, tensor));
  fs::create_directory("teacher");
  write_safetensors("teacher/model.safetensors", views);

  const Arguments taught = with(kFull, {"task.teacher=teacher"});
  const std::string said = train("taught", with(taught, {"training.max_steps=3"}));
  EXPECT_THAT(said, HasSubstr("task.teacher: teacher: 5 tensors"));
  const auto of_teacher = [&](const std::string& folder) {
    Tensors found;
    for (const auto& [name, tensor] : weights(folder, 3)) {
      if (name.starts_with("task.teacher.")) found[name.substr(13)] = tensor;
    }
    return found;
  };
  EXPECT_EQ(difference(of_teacher("taught"), teacher), 0);

  // A resumed run has it in its checkpoint.
  fs::remove_all("teacher");
  train("taught", taught);

  const Outcome missing = run({"judged.yaml", "exp_dir=none", "task.teacher=teacher"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.text, HasSubstr("the task's module 'teacher', load_from: "));
  EXPECT_FALSE(fs::exists("none"));
  // One that goes on from another run takes its modules, too.
  const Outcome continued =
      run({"judged.yaml", "exp_dir=continued", "task.teacher=teacher", "training.max_steps=7",
           "checkpoint.load_from=taught", "checkpoint.load_model_only=false"});
  EXPECT_EQ(continued.code, 0) << continued.text;
  const Outcome other = run({"judged.yaml", "exp_dir=other", "task.teacher=one"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.text, HasSubstr("does not fit the task's module 'teacher'"));
}

TEST_F(TaskModulesInRuns, AreTrainedAndSavedBesideAdapters) {
  train_plain();
  const Arguments adapted{"lora={target_modules: [c_attn], r: 2}", "checkpoint.load_from=plain"};
  const std::string said = train("adapted", adapted);
  EXPECT_THAT(said, HasSubstr("has nothing of task.head: it is initialised"));
  const Tensors saved = weights("adapted");
  EXPECT_TRUE(saved.contains("h.0.attn.c_attn.lora_A.weight"));
  EXPECT_TRUE(saved.contains("task.teacher.out.weight"));
  EXPECT_FALSE(saved.contains("wte.weight"));
  EXPECT_FALSE(saved.at("task.head.weight").equal(weights("adapted", 3).at("task.head.weight")));

  train_and_fail("cut_adapted", with(kFull, adapted));
  const std::string resumed =
      train("cut_adapted", with(with(kFull, adapted), {"task.fails_at=null"}));
  EXPECT_THAT(resumed, Not(HasSubstr("nothing of task.head"))) << "they come of the checkpoint";
  EXPECT_LT(difference(weights("cut_adapted"), saved), kRounding);
}

TEST_F(TaskModulesInRuns, AreRefusedBeforeAnythingIsLaunched) {
  const Outcome outcome =
      run(with({"judged.yaml", "exp_dir=none", "task.has_bad_name=true"}, kTwo));
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("the task's module 'a.head': a name is one part"));
  EXPECT_FALSE(fs::exists("none"));
}

TEST_F(TaskModulesInRuns, AreGroupedAndFrozenByTheirNames) {
  const std::string said =
      train("probed", {"optimizer.freeze=['w*', 'h.*', 'ln_f.*']",
                       "optimizer.groups=[{parameters: ['task.head.*'], lr: 0.5}]"});
  EXPECT_THAT(said, HasSubstr("task.head.*"));
  const Tensors first = weights("probed", 3);
  const Tensors last = weights("probed");
  EXPECT_TRUE(last.at("wte.weight").equal(first.at("wte.weight")));
  EXPECT_FALSE(last.at("task.head.weight").equal(first.at("task.head.weight")));
}

}  // namespace
}  // namespace phalanx
