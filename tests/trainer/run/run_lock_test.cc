// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"
#include "trainer/host/host.h"
#include "trainer/ranks/environment/launch_job.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr auto kNoPatience = 0ms;

class RunLockTest : public CommandTest {
 protected:
  RunLockTest() { fs::create_directory("run"); }

  static std::string name_of(pid_t pid) {
    return "process " + std::to_string(pid) + " on " + host_name();
  }
};

// A process that holds the lock of a run until it is killed.
class Holder {
 public:
  Holder() {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const RunLock lock("run", kNoPatience);
      [[maybe_unused]] const auto written = ::write(ready[1], "x", 1);
      while (true) pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    for (const int end : ready) close(end);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { end(); }

  pid_t pid() const { return pid_; }

  void end() {
    if (ended_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    ended_ = true;
  }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
};

TEST_F(RunLockTest, KeepsOthersOutWhileItLives) {
  {
    const RunLock lock("run", kNoPatience);
    EXPECT_THAT([] { const RunLock second("run", kNoPatience); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("run is being trained by"),
                                               HasSubstr(name_of(getpid())),
                                               HasSubstr("another exp_dir"))));
    EXPECT_EQ(holder_of_run("run"), name_of(getpid()));
    EXPECT_THROW(require_free_run("run", kNoPatience), UserError);
  }
  EXPECT_EQ(holder_of_run("run"), std::nullopt);
  const RunLock again("run", kNoPatience);
}

TEST_F(RunLockTest, SaysWhichLaunchItsProcessBelongsTo) {
  EXPECT_EQ(job_of_holder("run"), "");
  ::setenv(kLaunchJobVariable, "1a at localhost:29400 on host-0", 1);
  const RunLock lock("run", kNoPatience);
  ::unsetenv(kLaunchJobVariable);
  EXPECT_EQ(job_of_holder("run"), "1a at localhost:29400 on host-0");
  EXPECT_THAT(why_not_free("run", "2b at node0:29400 on node0", kNoPatience),
              AllOf(HasSubstr("of the launch 1a at localhost:29400 on host-0"),
                    HasSubstr("choose another exp_dir")));
  EXPECT_THAT(why_not_free("run", "2b at localhost:29400 on host-1", kNoPatience),
              HasSubstr("give all nodes one --rdzv-endpoint"));
}

TEST_F(RunLockTest, NamesAnotherProcessAndIsFreeWhenThatIsKilled) {
  Holder holder;
  EXPECT_EQ(holder_of_run("run"), name_of(holder.pid()));
  EXPECT_THROW(const RunLock lock("run", kNoPatience), UserError);
  EXPECT_EQ(holder_of_run("run"), name_of(holder.pid())) << "who failed has not written its name";
  holder.end();
  const RunLock lock("run", kNoPatience);
  EXPECT_EQ(holder_of_run("run"), name_of(getpid())) << "nothing is left of the longer text";
}

TEST_F(RunLockTest, WaitsForAHolderThatIsEnding) {
  Holder holder;
  std::jthread ender([&] { holder.end(); });
  const RunLock lock("run", 60s);
  EXPECT_EQ(holder_of_run("run"), name_of(getpid()));
}

TEST_F(RunLockTest, LookingForAHolderWritesNothing) {
  EXPECT_EQ(holder_of_run("run"), std::nullopt);
  require_free_run("run");
  require_free_run("not_there");
  EXPECT_TRUE(fs::is_empty("run"));
}

TEST_F(RunLockTest, AFileThatCannotBeWrittenIsAUsersMistake) {
  EXPECT_THAT(
      [] { const RunLock lock("not_there", kNoPatience); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("not_there/run.lock"), HasSubstr("exp_dir"))));
}

TEST_F(RunLockTest, TrainingInARunThatIsHeldIsRefused) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "training.max_steps=4"}).code, 0);
  const std::string before = read("run/starts.jsonl");
  Holder holder;
  const Outcome outcome = run({"tiny.yaml", "exp_dir=run"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("being trained by " + name_of(holder.pid())));
  EXPECT_EQ(read("run/starts.jsonl"), before);
  EXPECT_EQ(run({"evaluate", "run"}).code, 0) << "which only reads";
  holder.end();
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=run"}).code, 0);
}

}  // namespace
}  // namespace phalanx::tiny
