// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/parameter_server/await_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>

#include "trainer/rpc/future.h"
#include "trainer/rpc/rpc_error.h"

namespace phalanx::parameter_server {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// How often who waits asks whether those that it waits for are there.
constexpr Milliseconds kBetweenLooks{1000};

const std::string& worker_of(const rpc::Agent& agent, int64_t rank) {
  return agent.workers()[static_cast<size_t>(rank)];
}

[[noreturn]] void refuse_silence(const rpc::Agent& agent, const Awaited& awaited,
                                 const std::vector<int64_t>& missing) {
  std::vector<std::string> names;
  for (const int64_t rank : missing) {
    names.push_back(fmt::format("{} (rank {})", worker_of(agent, rank), rank));
  }
  throw rpc::WorkerLost(fmt::format("no {} have come in {} s from {}: timeout", awaited.what,
                                    std::chrono::duration<double>(agent.timeout()).count(),
                                    fmt::join(names, ", ")));
}

}  // namespace

void await_ranks(const rpc::Agent& agent, const Awaited& awaited) {
  const auto end = Clock::now() + agent.timeout();
  std::map<int64_t, rpc::Future> looks;
  while (!awaited.wait(kBetweenLooks)) {
    const std::vector<int64_t> missing = awaited.missing();
    if (Clock::now() >= end) refuse_silence(agent, awaited, missing);
    for (const int64_t rank : missing) {
      if (worker_of(agent, rank) == agent.name()) continue;
      const auto look = looks.find(rank);
      if (look != looks.end()) {
        if (!look->second.is_done()) continue;
        look->second.wait();  // throws of one that is gone
        looks.erase(look);
      }
      looks.emplace(rank, agent.is_there(worker_of(agent, rank)));
    }
  }
}

}  // namespace phalanx::parameter_server
