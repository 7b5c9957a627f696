// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string_view>

#include "tests/trainer/host/one_core.h"
#include "trainer/base/user_error.h"
#include "trainer/host/cores.h"
#include "trainer/launch/launchers/local_launcher/local_launcher.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A socket that listens on a free port of loopback, or only holds the port.
class TakenPort {
 public:
  TakenPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  uint16_t port() const { return port_; }
  void listen() const { EXPECT_EQ(::listen(socket_, 8), 0); }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  uint16_t port_ = 0;
};

std::string error_of(const Environment& environment) {
  try {
    init_from_env(environment, {.join_timeout = std::chrono::milliseconds(300)});
  } catch (const UserError& error) {
    return error.what();
  }
  return "joined";
}

Environment rank_of_three(int64_t rank, std::string address, uint16_t port) {
  return {.rank = rank,
          .world_size = 3,
          .local_rank = rank,
          .local_world_size = 3,
          .master_addr = std::move(address),
          .master_port = port};
}

TEST(Rendezvous, AWorldOfOneMeetsNobody) {
  const World world = init_from_env(Environment{});
  EXPECT_TRUE(world.ranks().is_single_rank());
  EXPECT_EQ(world.device(), at::Device(at::kCPU));
}

TEST(Rendezvous, KnowsTheRanksOnTheSameCores) {
  if (usable_hardware_threads() == 1) GTEST_SKIP() << "one core: all ranks are on it";
  const auto outcome = LocalLauncher({.processes = 3}).launch([](const Environment& environment) {
    std::optional<OneCore> pinned;
    if (environment.rank == 2) pinned.emplace();
    World world = init_from_env(environment);
    const std::vector<int64_t> expected =
        environment.rank == 2 ? std::vector<int64_t>{2} : std::vector<int64_t>{0, 1};
    const bool is_right = world.local_ranks_on_cores() == expected;
    world.close();
    return RankOutcome{.exit_code = is_right ? 0 : 1, .message = is_right ? "" : "miscounted"};
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Rendezvous, KeepsLocalRanksThatAreNotInTheOrderOfRanks) {
  if (usable_hardware_threads() == 1) GTEST_SKIP() << "one core: all ranks are on it";
  const auto outcome = LocalLauncher({.processes = 3}).launch([](const Environment& place) {
    std::optional<OneCore> pinned;
    if (place.rank == 2) pinned.emplace();
    Environment reversed = place;
    reversed.local_rank = 2 - place.rank;
    World world = init_from_env(reversed);
    const std::vector<int64_t> expected =
        place.rank == 2 ? std::vector<int64_t>{0} : std::vector<int64_t>{1, 2};
    const bool is_right = world.local_ranks_on_cores() == expected &&
                          world.ranks().local_rank() == reversed.local_rank;
    world.close();
    return RankOutcome{.exit_code = is_right ? 0 : 1, .message = is_right ? "" : "miscounted"};
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(Rendezvous, NamesTheRanksThatAreMissing) {
  Environment environment = rank_of_three(0, "127.0.0.1", 0);
  // A port that was free a moment ago.
  {
    const TakenPort probe;
    environment.master_port = probe.port();
  }
  EXPECT_THAT(error_of(environment),
              AllOf(HasSubstr("of 3 ranks have not come"), HasSubstr(": 1, 2. Are they started")));
}

TEST(Rendezvous, SaysThatNobodyServesTheStore) {
  const TakenPort silent;  // bound, not listening: connections are refused
  EXPECT_THAT(error_of(rank_of_three(1, "127.0.0.1", silent.port())),
              AllOf(HasSubstr("rank 1 found no store at 127.0.0.1:"),
                    HasSubstr("Is rank 0 running, and is the address right?")));
}

TEST(Rendezvous, SaysThatThePortIsTaken) {
  const TakenPort taken;
  taken.listen();
  EXPECT_THAT(error_of(rank_of_three(0, "127.0.0.1", taken.port())),
              AllOf(HasSubstr("rank 0 cannot serve the ranks' store at 127.0.0.1:"),
                    HasSubstr("Choose a port that is free")));
}

TEST(Rendezvous, SaysThatTheHostIsUnknown) {
  EXPECT_THAT(error_of(rank_of_three(1, "no-such-host.invalid", 1234)),
              HasSubstr("MASTER_ADDR is 'no-such-host.invalid', which this host does not know"));
}

/// Gives this process a host name of its own, as a container has; false where that is forbidden.
bool rename_host(std::string_view name) {
  return ::unshare(CLONE_NEWUTS) == 0 && ::sethostname(name.data(), name.size()) == 0;
}

// Those with a network namespace each are in tests/launchers/hosts_test.py.
TEST(Rendezvous, ContainersThatShareANetworkMeetOnLoopback) {
  constexpr const char* kForbidden = "forbidden";
  const RankOutcome outcome = LocalLauncher({.processes = 2}).launch([](const Environment& place) {
    ::unsetenv("GLOO_SOCKET_IFNAME");
    const std::string name = "container-" + std::to_string(place.rank) + ".invalid";
    if (!rename_host(name)) return RankOutcome{.exit_code = 1, .message = kForbidden};
    Environment found = place;
    found.local_rank = found.local_world_size = kFromHosts;
    World world = init_from_env(found);
    const std::string counted = std::to_string(world.ranks().local_world_size());
    world.close();
    return RankOutcome{.exit_code = 3, .message = counted + " on this host"};
  });
  if (outcome.message.ends_with(kForbidden)) GTEST_SKIP() << "no host can be renamed here";
  EXPECT_EQ(outcome.message, "1 on this host");
}

TEST(Rendezvous, FindsLocalRanksOfAHost) {
  const RankOutcome outcome = LocalLauncher({.processes = 3}).launch([](const Environment& place) {
    Environment found = place;
    found.local_rank = found.local_world_size = kFromHosts;
    World world = init_from_env(found);
    const bool is_right =
        world.ranks().local_rank() == place.rank && world.ranks().local_world_size() == 3;
    world.close();
    return is_right ? RankOutcome{} : RankOutcome{.exit_code = 1, .message = "another local rank"};
  });
  EXPECT_EQ(outcome, RankOutcome{});
}

}  // namespace
}  // namespace phalanx
