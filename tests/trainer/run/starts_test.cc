// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"
#include "trainer/host/host.h"
#include "trainer/run/environment_report.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::ThrowsMessage;

class Starts : public CommandTest {
 protected:
  static std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<Json> of_run(const fs::path& exp_dir) {
    std::vector<Json> starts;
    for (const auto& line : lines(read(exp_dir / "starts.jsonl"))) {
      starts.push_back(Json::parse(line));
    }
    return starts;
  }
};

TEST_F(Starts, TellWhatAStartWasMadeWith) {
  Start start{.step = 12, .launcher = "torchrun", .restart = 2};
  start.ranks = {{.host = "one", .device = "cpu"}, {.host = "two", .device = "cuda:0, A GPU"}};
  start.environment = {{"OMP_NUM_THREADS", "4"}, {"TORCH_X", "no \xFF text"}};
  start.changed = {{.path = "training.max_steps",
                    .before = config::Node::integer(3),
                    .after = config::Node::integer(4)},
                   {.path = "gone", .before = config::Node::string("a\nb")},
                   {.path = "new", .before = {}, .after = config::Node::null()}};
  const std::string line = format_start(start);
  EXPECT_EQ(lines(line).size(), 1);
  const Json json = Json::parse(line);
  EXPECT_THAT(json["time"].get<std::string>(),
              MatchesRegex("20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]{8}Z"));
  EXPECT_EQ(json["command"].get<std::vector<std::string>>(), command_line());
  EXPECT_EQ(json["folder"], fs::current_path().string());
  EXPECT_EQ(json["host"], host_name());
  EXPECT_EQ(json["pid"], getpid());
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["launcher"], "torchrun");
  EXPECT_EQ(json["restart"], 2);
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_EQ(json["ranks"][1], (Json{{"host", "two"}, {"device", "cuda:0, A GPU"}}));
  EXPECT_GE(json["cores"], 1);
  EXPECT_THAT(json["versions"]["libtorch"].get<std::string>(), HasSubstr("."));
  EXPECT_TRUE(json["versions"].contains("commit"));
  EXPECT_EQ(json["environment"]["OMP_NUM_THREADS"], "4");
  EXPECT_EQ(json["changed"], Json::parse(R"([
      {"field": "training.max_steps", "before": 3, "after": 4, "written": "default"},
      {"field": "gone", "before": "a\nb"},
      {"field": "new", "after": null, "written": "default"}])"));
}

TEST_F(Starts, AreAddedLineByLine) {
  append_start(".", "{\"a\":1}");
  append_start(".", "{\"a\":2}");
  EXPECT_EQ(read("starts.jsonl"), "{\"a\":1}\n{\"a\":2}\n");
}

TEST_F(Starts, ALineThatACrashHasTornIsEndedFirst) {
  write("starts.jsonl", "{\"a\":1}\n{\"a\"");
  append_start(".", "{\"a\":3}");
  EXPECT_THAT(lines(read("starts.jsonl")), ElementsAre("{\"a\":1}", "{\"a\"", "{\"a\":3}"));
}

TEST_F(Starts, AreReadByLaterOnesAsTheyWereWritten) {
  EXPECT_THAT(past_starts("."), IsEmpty());
  Start start{.step = 12, .launcher = "slurm", .job = {.name = "slurm 7", .restarts = 3}};
  start.changed = {{.path = "training.max_steps",
                    .before = config::Node::integer(3),
                    .after = config::Node::integer(4)},
                   {.path = "gone", .before = config::Node::string("1"), .after = {}},
                   {.path = "text", .before = {}, .after = config::Node::string("4")}};
  append_start(".", format_start(start));
  append_start(".", R"({"step": 14, "restart": 2})");
  const std::vector<PastStart> starts = past_starts(".");
  ASSERT_EQ(starts.size(), 2);
  EXPECT_THAT(starts[0].time, HasSubstr("T"));
  EXPECT_EQ(starts[0].pid, std::to_string(getpid()));
  EXPECT_EQ(starts[0].host, host_name());
  EXPECT_EQ(starts[0].step, 12);
  EXPECT_EQ(starts[0].job.name, "slurm 7");
  EXPECT_EQ(starts[0].job.restarts, 3);
  ASSERT_EQ(starts[0].changed.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(starts[0].changed[i].path, start.changed[i].path);
    const auto& after = start.changed[i].after;
    ASSERT_EQ(starts[0].changed[i].after.has_value(), after.has_value());
    if (!after) continue;
    EXPECT_TRUE(config::same_value(*starts[0].changed[i].after, *after));
  }
  EXPECT_EQ(starts[1].job.restarts, 2) << "as before there was job_restarts";
}

TEST_F(Starts, ALineThatIsNoneIsReadAsEmpty) {
  for (const char* line : {"{\"ste", "[]", "7", "", R"({"step": "x", "changed": 1, "job": {}})"}) {
    write("starts.jsonl", std::string(line) + "\n{\"step\": 8}\n");
    const std::vector<PastStart> starts = past_starts(".");
    ASSERT_EQ(starts.size(), 2) << line;
    EXPECT_FALSE(starts[0].step) << line;
    EXPECT_THAT(starts[0].job.name, IsEmpty()) << line;
    EXPECT_THAT(starts[0].changed, IsEmpty()) << line;
    EXPECT_EQ(starts[1].step, 8);
  }
}

TEST_F(Starts, AFileThatCannotBeWrittenIsAUsersMistake) {
  EXPECT_THAT(
      [] { append_start("not_there", "{}"); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("not_there/starts.jsonl"), HasSubstr("exp_dir"))));
}

TEST_F(Starts, OfARunTellWhereEachBeganAndWhatItChanged) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "task.fails_at=5"}).code, 1);
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "training.max_steps=6"}).code, 0);
  EXPECT_EQ(run({"run/config.yaml", "exp_dir=run"}).code, 0);
  const auto starts = of_run("run");
  ASSERT_EQ(starts.size(), 3);
  EXPECT_EQ(starts[0]["step"], 0);
  EXPECT_EQ(starts[0]["changed"], Json::array());
  EXPECT_EQ(starts[0]["world_size"], 1);
  EXPECT_EQ(starts[0]["ranks"], (Json{{{"host", host_name()}, {"device", "cpu"}}}));
  EXPECT_EQ(starts[1]["step"], 4);
  EXPECT_EQ(starts[1]["changed"], Json::parse(R"([
      {"field": "training.max_steps", "before": 8, "after": 6, "written": "command line"},
      {"field": "task.fails_at", "before": 5, "after": null, "written": "default"}])"));
  EXPECT_EQ(starts[2]["step"], 6);
  EXPECT_EQ(starts[2]["changed"], Json::array());
}

// It has trained nothing: what it changed is news for the next one.
TEST_F(Starts, AreComparedWithTheLastOneThatWasNotRefused) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "training.max_steps=4"}).code, 0);
  EXPECT_EQ(
      run({"tiny.yaml", "exp_dir=run", "training.max_steps=6", "++checkpoint.resume=never"}).code,
      2);
  const Outcome next = run({"tiny.yaml", "exp_dir=run", "training.max_steps=6"});
  EXPECT_EQ(next.code, 0) << next.errors;
  EXPECT_THAT(next.output, HasSubstr("training.max_steps: was 4, now 6 (command line)\n"));
  const auto starts = of_run("run");
  ASSERT_EQ(starts.size(), 3);
  EXPECT_EQ(starts[2]["changed"], Json::parse(R"([
      {"field": "training.max_steps", "before": 4, "after": 6, "written": "command line"}])"));
}

TEST_F(Starts, AreComparedWithTheLastOneAlsoWhereItHasSavedNothing) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "training.max_steps=4"}).code, 0);
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "optimizer.lr=0.2", "task.fails_at=5"}).code, 1);
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "optimizer.lr=0.3", "task.fails_at=5"}).code, 1);
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "++training.seed=7", "task.fails_at=5"}).code, 1);
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run"}).code, 0) << "as the checkpoint was trained";
  const auto starts = of_run("run");
  ASSERT_EQ(starts.size(), 5);
  EXPECT_EQ(starts[2]["changed"], Json::parse(R"([
      {"field": "optimizer.lr", "before": 0.2, "after": 0.3, "written": "command line"}])"));
  EXPECT_EQ(starts[3]["changed"], Json::parse(R"([
      {"field": "training.seed", "before": 0, "after": 7, "written": "command line"},
      {"field": "optimizer.lr", "before": 0.3, "after": 0.1, "written": "default"}])"));
  EXPECT_EQ(starts[4]["changed"], Json::parse(R"([
      {"field": "task.fails_at", "before": 5, "after": null, "written": "default"},
      {"field": "training.seed", "before": 7, "after": 0, "written": "default"}])"));
}

TEST_F(Starts, ARefusedOneIsNone) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run"}).code, 0);
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "training.seed=5"}).code, 2);
  EXPECT_EQ(of_run("run").size(), 1);
}

}  // namespace
}  // namespace phalanx::tiny
