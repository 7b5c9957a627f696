// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/spawn.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using Function = std::function<void(const Environment&)>;

std::optional<SpawnError> error_of(int64_t processes, const Function& function) {
  try {
    spawn(processes, function);
  } catch (const SpawnError& error) {
    return error;
  }
  return std::nullopt;
}

TEST(Spawn, RunsAFunctionInProcesses) {
  const fs::path folder = fs::path(testing::TempDir()) / ("spawn_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const auto parent = getpid();
  spawn(3, [&](const Environment& environment) {
    if (getpid() == parent) throw std::logic_error("it is this process");
    std::ofstream(folder / std::to_string(environment.rank)) << environment.world_size;
  });
  for (const char* const rank : {"0", "1", "2"}) {
    std::string world_size;
    std::ifstream(folder / rank) >> world_size;
    EXPECT_EQ(world_size, "3") << "rank " << rank;
  }
  fs::remove_all(folder);
}

TEST(Spawn, TellsOfTheRankThatFails) {
  const auto failed = error_of(2, [](const Environment& environment) {
    if (environment.rank == 1) throw std::runtime_error("no such file");
  });
  ASSERT_TRUE(failed);
  EXPECT_STREQ(failed->what(), "rank 1: no such file");
  EXPECT_EQ(failed->outcome().rank, 1);
  EXPECT_EQ(failed->outcome().exit_code, 1);

  const auto refused = error_of(1, [](const Environment&) { throw UserError("no such field"); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->outcome().exit_code, 2);

  const auto killed = error_of(2, [](const Environment& environment) {
    if (environment.rank == 0) raise(SIGKILL);
  });
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->outcome().signal, SIGKILL);
  EXPECT_EQ(killed->outcome().rank, 0);
}

TEST(Spawn, RefusesWhatItCannotFork) {
  EXPECT_THROW(spawn(0, [](const Environment&) {}), std::invalid_argument);
  std::binary_semaphore end(0);
  std::jthread thread([&] { end.acquire(); });
  EXPECT_THROW(spawn(2, [](const Environment&) {}), std::logic_error);
  end.release();
}

}  // namespace
}  // namespace phalanx
