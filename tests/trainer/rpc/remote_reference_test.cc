// SPDX-License-Identifier: Apache-2.0
// Values that stay where they are made.

#include "trainer/rpc/remote_reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "tests/trainer/rpc/processes.h"
#include "trainer/rpc/agent.h"
#include "trainer/rpc/rpc_error.h"

namespace phalanx::rpc {
namespace {

using ::testing::Each;

REGISTER_RPC_FUNCTION("make", [](const Values& values) {
  return Values{.tensors = {values.tensors[0] * 2}, .text = "made of " + values.text};
});
REGISTER_RPC_FUNCTION("break", [](const Values&) -> Values {
  throw std::runtime_error("it cannot be made");
});
REGISTER_RPC_FUNCTION("never", [](const Values&) {
  static const Promise promise;
  return promise.future();
});
REGISTER_RPC_FUNCTION("fetch", [](const Values& values) { return values.references[0].to_here(); });
REGISTER_RPC_FUNCTION("look", [](const Values& values) {
  return Values{.tensors = {values.references[0].local_value().tensors[0]},
                .text = values.references[0].is_owner() ? "mine" : "another's"};
});
REGISTER_RPC_FUNCTION("pass on",
                      [](const Values& values) { return Values{.references = values.references}; });

// Handles are given up by messages.
void wait_until_dropped(const Agent& agent) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (agent.kept_values() > 0) {
    require(std::chrono::steady_clock::now() < end, "no value is kept any more");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Ends with_agents(int64_t processes, const std::function<void(const Agent&)>& act) {
  return in_processes(processes, [&](const Ranks& ranks) {
    Agent agent(ranks, {});
    if (ranks.is_first()) act(agent);
    ranks.barrier();
    wait_until_dropped(agent);
    agent.shutdown();
  });
}

const Values kArguments{.tensors = {at::arange(4)}, .text = "four"};

TEST(RemoteReference, BringsACopyOfTheValueHere) {
  EXPECT_THAT(with_agents(2,
                          [](const Agent& agent) {
                            for (const char* worker : {"worker0", "worker1"}) {
                              const auto reference = agent.remote(worker, "make", kArguments);
                              require(reference.owner() == worker, "its owner");
                              for (int i = 0; i < 2; ++i) {
                                const Values value = reference.to_here();
                                require(value.tensors[0].equal(at::arange(4) * 2), "the tensor");
                                require(value.text == "made of four", "the text");
                                value.tensors[0].zero_();  // the next copy is another one
                              }
                            }
                          }),
              Each(0));
}

TEST(RemoteReference, IsTheValueItselfOnItsOwner) {
  EXPECT_THAT(with_agents(2,
                          [](const Agent& agent) {
                            const auto reference = agent.remote("worker1", "make", kArguments);
                            const Values seen =
                                agent.call("worker1", "look", {.references = {reference}});
                            require(seen.text == "mine", seen.text);
                            require(seen.tensors[0].equal(at::arange(4) * 2), "the tensor");
                            const auto told =
                                text_of_error<std::logic_error>([&] { reference.local_value(); });
                            require(told ==
                                        "the value of this reference lies on worker 'worker1': "
                                        "use to_here",
                                    told);
                          }),
              Each(0));
}

TEST(RemoteReference, GoesToOtherWorkersAndBack) {
  const auto ends = in_processes(3, [](const Ranks& ranks) {
    // The owner has one thread: it gives the handle up before it is asked for the value.
    Agent agent(ranks, {.threads = ranks.rank() == 1 ? 1 : 16});
    if (ranks.is_first()) {
      std::optional reference = agent.remote("worker1", "make", kArguments);
      const Values fetched = agent.call("worker2", "fetch", {.references = {*reference}});
      require(fetched.tensors[0].equal(at::arange(4) * 2), "fetched");
      const Values back = agent.call("worker2", "pass on", {.references = {*reference}});
      // The first handle goes; the one that came back keeps the value.
      reference.reset();
      require(back.references[0].to_here().text == "made of four", "back");
    }
    ranks.barrier();
    wait_until_dropped(agent);
    agent.shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

// The value would be gone with the last handle.
template <class Reference>
concept GivesItsValue = requires(Reference&& reference) {
  std::forward<Reference>(reference).local_value();
};
static_assert(GivesItsValue<const RemoteReference&>);
static_assert(!GivesItsValue<RemoteReference>);

TEST(RemoteReference, ThrowsWhatItsMakingHasThrown) {
  EXPECT_THAT(with_agents(2,
                          [](const Agent& agent) {
                            const auto reference = agent.remote("worker1", "break");
                            const auto told =
                                text_of_error<RemoteError>([&] { reference.to_here(); });
                            require(told.ends_with(": it cannot be made"), told);
                            require(told.starts_with("worker 'worker1' (rank 1)"), told);
                          }),
              Each(0));
}

TEST(RemoteReference, IsWaitedForOnItsOwnerUntilTheTimeout) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    Agent agent(ranks, {.timeout = std::chrono::milliseconds(300)});
    if (ranks.is_first()) {
      const auto reference = agent.remote("worker0", "never");
      const auto told = text_of_error<WorkerLost>([&] { reference.local_value(); });
      require(told.starts_with("worker 'worker0' (rank 0) has not answered"), told);
    }
    agent.shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

// One thread: one that waited for worker2 would hold it, and that worker's answer with it.
TEST(RemoteReference, IsAnAnswerBeforeItsValueIsMade) {
  const auto ends = in_processes(3, [](const Ranks& ranks) {
    std::unique_ptr<Agent> agent;
    const auto make_there = [&agent](const Values& values) {
      return Values{.references = {agent->remote("worker2", "make", values)}};
    };
    agent = std::make_unique<Agent>(
        ranks, AgentOptions{.functions = {{"make there", function_of(make_there)}}, .threads = 1});
    ranks.barrier();  // All ranks have set `agent`.
    if (ranks.is_first()) {
      const Values answer = agent->call("worker1", "make there", kArguments);
      require(answer.references[0].owner() == "worker2", "its owner");
      require(answer.references[0].to_here().text == "made of four", "the value");
    }
    ranks.barrier();
    wait_until_dropped(*agent);
    agent->shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(RemoteReference, IsRefusedInTheAnswerWhereItsOwnerIsGone) {
  const auto ends = in_processes(3, [](const Ranks& ranks) {
    std::unique_ptr<Agent> agent;
    const auto make_there = [&agent](const Values& values) {
      return Values{.references = {agent->remote("worker2", "make", values)}};
    };
    const auto die = [](const Values&) {
      kill(getpid(), SIGKILL);
      return Values{};
    };
    agent = std::make_unique<Agent>(
        ranks, AgentOptions{.functions = {{"make there", function_of(make_there)},
                                          {"die", function_of(die)}}});
    ranks.barrier();  // All ranks have set `agent`.
    if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::minutes(5));  // until killed
    if (ranks.rank() == 2) std::this_thread::sleep_for(std::chrono::minutes(5));
    text_of_error<WorkerLost>([&] { agent->call("worker2", "die"); });
    const auto told =
        text_of_error<WorkerLost>([&] { agent->call("worker1", "make there", kArguments); });
    require(told.starts_with("worker 'worker1' (rank 1) could not go on in 'make there': worker "
                             "'worker2' (rank 2) is gone"),
            told);
    text_of_error<WorkerLost>([&] { agent->call("worker1", "die"); });
  });
  EXPECT_EQ(ends, (Ends{0, -SIGKILL, -SIGKILL}));
}

TEST(RemoteReference, IsRefusedInTheAnswerAfterItsAgent) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    std::optional<RemoteReference> old;
    {
      Agent agent(ranks, {.name = ranks.is_first() ? "first" : "second"});
      old = agent.remote(agent.name(), "make", kArguments);
      agent.shutdown();
    }
    const auto answer_old = [&old](const Values&) { return Values{.references = {*old}}; };
    Agent agent(ranks, {.functions = {{"old", function_of(answer_old)}}});
    if (ranks.is_first()) {
      const auto told = text_of_error<RemoteError>(
          [&] { agent.call("worker1", "old", {}, std::chrono::seconds(30)); });
      require(told == "worker 'worker1' (rank 1) failed in 'old': the RPC agent has ended", told);
      const Future passed = agent.call_async("worker1", "pass on", {.references = {*old}});
      const auto own = text_of_error<std::logic_error>([&] { passed.wait(); });
      require(own == "the RPC agent has ended", own);
    }
    agent.shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(RemoteReference, IsOfNoUseAfterItsAgent) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    std::optional<RemoteReference> reference;
    {
      Agent agent(ranks, {});
      if (ranks.is_first()) reference = agent.remote("worker1", "make", kArguments);
      if (reference) reference->to_here();
      agent.shutdown();
    }
    if (!reference) return;
    const auto told = text_of_error<std::logic_error>([&] { reference->to_here(); });
    require(told == "the RPC agent has ended", told);
  });
  EXPECT_THAT(ends, Each(0));
}

}  // namespace
}  // namespace phalanx::rpc
