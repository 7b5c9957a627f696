// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/last_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/stop_signal.h"
#include "trainer/run/json_lines.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

class LastEndTest : public testing::Test {
 protected:
  LastEndTest() {
    std::filesystem::create_directories(folder_.path() / "checkpoints");
    std::ofstream(folder_.path() / "checkpoints/latest") << "step-00000030\n";
  }

  BegunStart start() const {
    return {
        .exp_dir = folder_.path().string(), .number = 3, .step = 20, .checkpoint = "step-00000020"};
  }

  std::vector<std::string> ends() const { return lines_of(folder_.path() / "ends.jsonl"); }

  // The signal that ended a process with a LastEnd, which has done this.
  int signal_of_child(const std::function<void()>& body) const {
    const pid_t child = ::fork();
    if (child == 0) {
      RunProgress progress;
      progress.begin(start());
      progress.reach(34);
      const LastEnd last_end(start(), progress);
      body();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

  TemporaryFolder folder_;
};

TEST_F(LastEndTest, OfASecondInterruptIsALine) {
  const std::string begin = utc_now();
  EXPECT_EQ(signal_of_child([] {
              StopSignal::install();
              ::raise(SIGINT);
              ::raise(SIGINT);
            }),
            SIGINT);
  ASSERT_THAT(ends(), SizeIs(1));
  auto end = nlohmann::json::parse(ends().front());
  EXPECT_THAT(end["time"].get<std::string>(), MatchesRegex("....-..-..T..:..:..Z"));
  EXPECT_GE(end["time"], begin);
  EXPECT_LE(end["time"], utc_now());
  end.erase("time");
  EXPECT_EQ(end.dump(),
            R"({"checkpoint":"step-00000030","error":"a second SIGINT ended the run at )"
            R"(once","exit_code":130,"saved":true,"signal":2,"start":3,"step":34})");
}

TEST_F(LastEndTest, BeforeTheCheckpointIsLoadedSaysSo) {
  const pid_t child = ::fork();
  if (child == 0) {
    RunProgress progress;
    progress.begin(start());
    const LastEnd last_end(start(), progress);
    LastEnd::record(SIGABRT, "no memory");
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_THAT(ends(), SizeIs(1));
  const auto end = nlohmann::json::parse(ends().front());
  EXPECT_EQ(end["began"], false);
  EXPECT_EQ(end["step"], 20);
}

TEST_F(LastEndTest, OfOneInterruptIsLeftToTheRun) {
  EXPECT_EQ(signal_of_child([] {
              StopSignal::install();
              ::raise(SIGINT);
            }),
            0);
  EXPECT_THAT(ends(), IsEmpty());
}

TEST_F(LastEndTest, IsWholeJsonWhateverTheErrorIs) {
  signal_of_child([] { LastEnd::record(SIGABRT, "a \"quoted\\\nerror" + std::string(5000, '"')); });
  ASSERT_THAT(ends(), SizeIs(1));
  const auto end = nlohmann::json::parse(ends().front());
  EXPECT_EQ(end["error"].get<std::string>().substr(0, 17), "a \"quoted\\ error\"");
  EXPECT_EQ(end["signal"], SIGABRT);
}

TEST_F(LastEndTest, StandsBehindATornLineOnceAndNotAfterItsLife) {
  std::ofstream(folder_.path() / "ends.jsonl") << "{\"torn";
  signal_of_child([&] {
    LastEnd::record(SIGABRT, "first");
    LastEnd::record(SIGABRT, "second");
  });
  EXPECT_THAT(ends(), ElementsAre("{\"torn", testing::HasSubstr("\"first\"")));
  LastEnd::record(SIGABRT, "third");
  EXPECT_THAT(ends(), SizeIs(2));
}

}  // namespace
}  // namespace phalanx
