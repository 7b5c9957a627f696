// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/remote_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

RemoteNode node_that(const std::string& script) {
  return {.host = "b", .command = {"sh", "-c", script}};
}

const auto kNothing = [] {};

std::string failure_of(RemoteNodes& nodes) {
  pollfd news{nodes.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&news, 1, 30'000), 1);
  return nodes.take_failure().value_or("none");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream rest(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(rest, line);) lines.push_back(line);
  return lines;
}

void wait_until(const std::function<bool()>& is_so) {
  const auto end = steady_clock::now() + seconds(30);
  while (!is_so()) {
    ASSERT_LT(steady_clock::now(), end);
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST(RemoteNodes, AreShownAndEndWithTheRun) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    const std::string until_end = "; echo error >&2; read line; echo done";
    RemoteNodes nodes({node_that("echo begun" + until_end), node_that("echo begun" + until_end)},
                      seconds(30), kNothing);
    EXPECT_EQ(nodes.finish(1), std::nullopt) << "they ended because they were asked to";
  }
  EXPECT_THAT(lines_of(testing::internal::GetCapturedStdout()),
              testing::UnorderedElementsAre("begun", "begun", "done", "done"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error\nerror\n");
}

TEST(RemoteNodes, WithoutAnyThereIsNothing) {
  RemoteNodes none({}, seconds(30), kNothing);
  EXPECT_EQ(none.descriptor(), -1);
  EXPECT_EQ(none.finish(1), std::nullopt);
}

TEST(RemoteNodes, OneThatEndsBeforeTheRunIsAFailureWithItsLastLines) {
  RemoteNodes nodes({node_that("cat"), node_that("printf 'why\\r\\n' >&2; exit 7")}, seconds(30),
                    kNothing);
  EXPECT_EQ(failure_of(nodes),
            "the launch on host 'b' left with exit code 7 before the run did\n"
            "  its last lines:\n    why");
}

TEST(RemoteNodes, WhatSshCannotReachIsToldAsThat) {
  RemoteNodes lost({node_that("exit 255")}, seconds(30), kNothing);
  EXPECT_EQ(failure_of(lost),
            "host 'b' is not reached, or the launch there was killed: sh left with exit code 255");
  RemoteNodes none({{.host = "b", .command = {"no-such-ssh"}}}, seconds(30), kNothing);
  EXPECT_THAT(failure_of(none), testing::HasSubstr("cannot start 'no-such-ssh': No such file"));
}

TEST(RemoteNodes, ACommandThatIsKilledHereIsToldFromALaunchThatFailsThere) {
  RemoteNodes killed({node_that("kill -9 $$")}, seconds(30), kNothing);
  EXPECT_EQ(
      failure_of(killed),
      "the launch on host 'b' is lost: sh, by which it was started, was killed here by signal "
      "9 (Killed)");
}

// The end of a run whose node has left with 7, and been waited for, a moment before.
std::optional<std::string> end_after_7(int exit_code) {
  const TemporaryFolder folder;
  const std::string file = (folder / "pid").string();
  RemoteNodes nodes({node_that("echo $$ > " + file + "_; mv " + file + "_ " + file + "; exit 7")},
                    seconds(30), kNothing);
  wait_until([&] { return fs::exists(file); });
  const std::string pid = slurp(file);
  wait_until([&] { return !fs::exists("/proc/" + pid.substr(0, pid.find('\n'))); });
  return nodes.finish(exit_code);
}

TEST(RemoteNodes, AnEndBeforeTheRunsIsTheCauseIfTheRunEndsInAnotherWay) {
  EXPECT_EQ(end_after_7(7), std::nullopt);
  EXPECT_EQ(end_after_7(0), std::nullopt);
  EXPECT_EQ(end_after_7(143), "the launch on host 'b' left with exit code 7 before the run did");
}

TEST(RemoteNodes, OneThatStaysIsKilled) {
  const TemporaryFolder folder;
  const auto begin = steady_clock::now();
  RemoteNodes nodes({node_that("touch " + (folder / "begun").string() + "; exec sleep 60")},
                    milliseconds(100), kNothing);
  wait_until([&] { return fs::exists(folder / "begun"); });
  EXPECT_EQ(nodes.finish(0), std::nullopt);
  EXPECT_LT(steady_clock::now() - begin, seconds(30));
}

}  // namespace
}  // namespace phalanx
