// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/agent.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>

#include "tests/trainer/rpc/processes.h"
#include "trainer/parallel/ranks_of_store.h"
#include "trainer/rpc/functions.h"
#include "trainer/rpc/rpc_error.h"

namespace phalanx::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Each;

REGISTER_RPC_FUNCTION("add", [](const Values& values) {
  return Values{.tensors = {values.tensors[0] + values.tensors[1]}, .text = values.text + "!"};
});
REGISTER_RPC_FUNCTION("fail", [](const Values& values) -> Values {
  throw std::runtime_error("no " + values.text);
});
REGISTER_RPC_FUNCTION("never", [](const Values&) {
  static const Promise promise;
  return promise.future();
});

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A body that ends in order; `act` is called on rank 0 only.
Ends with_agents(int64_t processes, const std::function<void(Agent&)>& act) {
  return in_processes(processes, [&](const Ranks& ranks) {
    Agent agent(ranks, {});
    if (ranks.is_first()) act(agent);
    agent.shutdown();
  });
}

TEST(Agent, CallsFunctionsOfOthersAndOfItself) {
  EXPECT_THAT(with_agents(2,
                          [](Agent& agent) {
                            const std::string text("line\n\0 and zero", 15);
                            for (const char* worker : {"worker1", "worker0"}) {
                              const Values sum = agent.call(
                                  worker, "add",
                                  {.tensors = {at::arange(3), at::full({3}, 2)}, .text = text});
                              require(sum.tensors[0].equal(at::arange(3) + 2), "the sum");
                              require(sum.text == text + "!", "the text");
                            }
                          }),
              Each(0));
}

TEST(Agent, HasManyCallsUnderWay) {
  EXPECT_THAT(
      with_agents(2,
                  [](Agent& agent) {
                    std::vector<Future> futures;
                    for (int i = 0; i < 200; ++i) {
                      futures.push_back(agent.call_async(
                          "worker1", "add", {.tensors = {at::full({100}, i), at::full({100}, 1)}}));
                    }
                    const auto all = wait_all(futures);
                    for (int i = 0; i < 200; ++i) {
                      require(all[static_cast<size_t>(i)].tensors[0].equal(at::full({100}, i + 1)),
                              "answers in the order of the calls");
                    }
                  }),
      Each(0));
}

TEST(Agent, TellsWhoseFunctionThrewWhat) {
  EXPECT_THAT(
      with_agents(
          2,
          [](Agent& agent) {
            const auto told = text_of_error<RemoteError>(
                [&] { agent.call("worker1", "fail", {.text = "chance"}); });
            require(told == "worker 'worker1' (rank 1) failed in 'fail': no chance", told);
            const auto unknown =
                text_of_error<RemoteError>([&] { agent.call("worker1", "no_such_function"); });
            require(contains(unknown, "there is no function 'no_such_function'"), unknown);
            const auto nobody =
                text_of_error<std::invalid_argument>([&] { agent.call("worker7", "add"); });
            require(nobody == "there is no RPC worker 'worker7'; there are: worker0, worker1",
                    nobody);
          }),
      Each(0));
}

// The cause lies elsewhere: a run must not blame the worker that was called.
TEST(Agent, TellsWhereAFunctionLacksAnotherWorker) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const auto lose = [](const Values&) -> Values { throw CommunicationError("rank 7 is gone"); };
    Agent agent(ranks, {.functions = {{"lose", function_of(lose)}}});
    if (ranks.is_first()) {
      const auto told = text_of_error<WorkerLost>([&] { agent.call("worker1", "lose"); });
      require(told == "worker 'worker1' (rank 1) could not go on in 'lose': rank 7 is gone", told);
    }
    agent.shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, ForwardsACallWithoutAThreadThatWaits) {
  const auto ends = in_processes(3, [](const Ranks& ranks) {
    std::unique_ptr<Agent> agent;
    // One thread: a function that waited for the next worker would hold it, and its answer with it.
    agent = std::make_unique<Agent>(
        ranks, AgentOptions{.functions = {{"forward", function_of([&](Values values) {
                                             return agent->call_async("worker2", "add",
                                                                      std::move(values));
                                           })}},
                            .threads = 1});
    ranks.barrier();  // All ranks have set `agent`.
    if (ranks.is_first()) {
      std::vector<Future> futures;
      for (int i = 0; i < 8; ++i) {
        futures.push_back(agent->call_async("worker1", "forward",
                                            {.tensors = {at::full({1}, i), at::full({1}, i)}}));
      }
      require(wait_all(futures)[7].tensors[0].item<int64_t>() == 14, "the answer of the last one");
    }
    agent->shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, AnswersACallByALaterOne) {
  const auto ends = in_processes(3, [](const Ranks& ranks) {
    std::mutex mutex;
    std::vector<Promise> waiting;
    const auto meet = [&](const Values&) {
      const std::scoped_lock lock(mutex);
      waiting.emplace_back();
      const Future future = waiting.back().future();
      if (waiting.size() == 2) {
        for (const Promise& promise : waiting) promise.set({.text = "both are here"});
      }
      return future;
    };
    Agent agent(ranks, {.functions = {{"meet", function_of(meet)}}});
    if (ranks.rank() != 1) {
      require(agent.call("worker1", "meet").text == "both are here", "the text");
    }
    agent.shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, NamesWhoDoesNotAnswerAtTheTimeout) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    Agent agent(ranks, {.name = ranks.is_first() ? "trainer" : "server"});
    if (ranks.is_first()) {
      const auto told =
          text_of_error<WorkerLost>([&] { agent.call("server", "never", {}, milliseconds(300)); });
      require(told == "worker 'server' (rank 1) has not answered 'never' in 0.3 s: timeout", told);
      require(agent.silent_workers(seconds(30)).empty(), "the worker is there");
    }
    ranks.barrier();  // a call is under way: no end in order
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, WaitsForItselfUntilTheTimeout) {
  EXPECT_THAT(with_agents(2,
                          [](Agent& agent) {
                            const auto told = text_of_error<WorkerLost>(
                                [&] { agent.call("worker0", "never", {}, milliseconds(100)); });
                            require(told ==
                                        "worker 'worker0' (rank 0) has not answered 'never' in "
                                        "0.1 s: timeout",
                                    told);
                          }),
              Each(0));
}

TEST(Agent, TakesTheLongestAndTheShortestTimeout) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const Agent agent(ranks, {.timeout = std::chrono::hours(1000)});
    if (ranks.is_first()) {
      agent.call("worker1", "add", {.tensors = {at::arange(2), at::arange(2)}});
      const auto told =
          text_of_error<WorkerLost>([&] { agent.call("worker1", "never", {}, milliseconds(0)); });
      require(contains(told, "has not answered 'never'"), told);
    }
    ranks.barrier();  // a call is under way: no end in order
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, DropsAnAnswerThatComesAfterItsEnd) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const Promise late;
    {
      const auto answer_late = [late](const Values&) { return late.future(); };
      const Agent agent(ranks, {.functions = {{"late", function_of(answer_late)}}});
      if (ranks.is_first()) {
        text_of_error<WorkerLost>([&] { agent.call("worker1", "late", {}, milliseconds(300)); });
      }
      ranks.barrier();
    }
    late.set({});
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, NamesCallsThatAreUnderWayAtItsEnd) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    Agent agent(ranks, {.timeout = milliseconds(300)});
    if (ranks.is_first()) {
      const Future first = agent.call_async("worker1", "never", {}, seconds(60));
      const Future second = agent.call_async("worker1", "never", {}, seconds(60));
      const auto told = text_of_error<CommunicationError>([&] { agent.shutdown(); });
      require(told ==
                  "RPC calls are under way at the end, beyond the timeout of 0.3 s: 'never' of "
                  "worker 'worker1' (rank 1), 2 times",
              told);
    } else {
      text_of_error<CommunicationError>([&] { agent.shutdown(); });  // rank 0 leaves
    }
  });
  EXPECT_THAT(ends, Each(0));
}

// Not the fault of the worker that is called.
TEST(Agent, ThrowsWhatItCannotSendAsItIs) {
  EXPECT_THAT(with_agents(2,
                          [](Agent& agent) {
                            const auto told = text_of_error<std::invalid_argument>(
                                [&] { agent.call("worker1", "add", {.tensors = {at::Tensor()}}); });
                            require(contains(told, "defined tensors in host memory only"), told);
                          }),
              Each(0));
}

TEST(Agent, NamesAWorkerThatIsKilled) {
  const auto ends = in_processes(3, [](const Ranks& ranks) {
    Agent agent(ranks, {.functions = {{"die", function_of([](const Values&) {
                                         kill(getpid(), SIGKILL);
                                         return Values{};
                                       })}}});
    if (ranks.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::minutes(5));  // until it is killed
    }
    if (ranks.rank() == 2) return;
    const Future other = agent.call_async("worker1", "never");
    const auto told = text_of_error<WorkerLost>([&] { agent.call("worker1", "die"); });
    require(contains(told, "worker 'worker1' (rank 1) is gone: 'die': "), told);
    const auto waiting = text_of_error<WorkerLost>([&] { other.wait(); });
    require(contains(waiting, "worker 'worker1' (rank 1) is gone: 'never': "), waiting);
    const auto later = text_of_error<WorkerLost>([&] { agent.call("worker1", "add"); });
    require(contains(later, "worker 'worker1' (rank 1)"), later);
  });
  EXPECT_EQ(ends, (Ends{0, -SIGKILL, 0}));
}

TEST(Agent, NamesAWorkerThatIsStopped) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    Agent agent(ranks, {.functions = {{"stop", function_of([](const Values&) {
                                         kill(getpid(), SIGSTOP);
                                         return Values{};
                                       })}}});
    if (!ranks.is_first()) std::this_thread::sleep_for(std::chrono::minutes(5));
    const auto told =
        text_of_error<WorkerLost>([&] { agent.call("worker1", "stop", {}, seconds(1)); });
    require(told == "worker 'worker1' (rank 1) has not answered 'stop' in 1 s: timeout", told);
    require(agent.silent_workers(milliseconds(500)) == "worker1 (rank 1)", "who is silent");
  });
  EXPECT_EQ(ends, (Ends{0, -SIGKILL}));
}

TEST(Agent, EndsAndBeginsAnew) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    for (int round = 0; round < 3; ++round) {
      Agent agent(ranks, {});
      const auto second = text_of_error<std::logic_error>([&] { const Agent another(ranks, {}); });
      require(contains(second, "has an RPC agent already"), second);
      if (ranks.is_first())
        agent.call("worker1", "add", {.tensors = {at::arange(2), at::arange(2)}});
      agent.shutdown();
      const auto ended = text_of_error<std::logic_error>([&] { agent.call("worker1", "add"); });
      require(ended == "the RPC agent has ended", ended);
    }
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, RefusesOptionsThatCannotBe) {
  const auto ends = in_processes(1, [](const Ranks& /*ranks*/) {
    const auto threads =
        text_of_error<std::invalid_argument>([] { const Agent agent(Ranks(), {.threads = 0}); });
    require(threads == "an RPC agent needs one thread at least", threads);
    const Function function = function_of([](const Values& values) { return values; });
    const auto own = text_of_error<std::invalid_argument>([&] {
      const Agent agent(Ranks(), {.functions = {{"phalanx/ping", function}}});
    });
    require(own == "the name 'phalanx/ping' of an RPC function is Phalanx's own", own);
    Agent(Ranks(), {}).shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, RefusesFunctionsThatCannotBeRegistered) {
  const auto refusal = [] {
    return text_of_error<std::logic_error>([] { const Agent agent(Ranks(), {}); });
  };
  const Function function = function_of([](const Values& values) { return values; });
  const auto twice = in_processes(1, [&](const Ranks& /*ranks*/) {
    register_function("twice", function, "first.cc", 1);
    register_function("twice", function, "second.cc", 2);
    const std::string told = refusal();
    require(told == "the RPC function 'twice' is registered in first.cc:1 and in second.cc:2",
            told);
  });
  EXPECT_THAT(twice, Each(0));
  const auto own = in_processes(1, [&](const Ranks& /*ranks*/) {
    register_function("phalanx/ping", function, "own.cc", 3);
    const std::string told = refusal();
    require(told.starts_with("the RPC function 'phalanx/ping' of own.cc:3 has a name of Phalanx's "
                             "own"),
            told);
  });
  EXPECT_THAT(own, Each(0));
}

/// A store of which this process gets no more answers about RPC agents, as if the process that
/// serves it was stopped.
class SilentStore final : public c10d::FileStore {
 public:
  SilentStore(const std::string& path, int workers)
      : FileStore(path, workers), file_(path), workers_(workers) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<SilentStore>(file_, workers_);
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    if (contains(key, "/rpc/")) std::this_thread::sleep_for(std::chrono::minutes(5));
    FileStore::set(key, value);
  }

 private:
  std::string file_;
  int workers_;
};

TEST(Agent, NamesAStoreThatDoesNotAnswerAtTheTimeout) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const std::string path = ranks.broadcast(std::string(std::getenv("TEST_TMPDIR")) +
                                             "/silent_store_" + std::to_string(getpid()));
    const Ranks silent =
        ranks_of_store(c10::make_intrusive<SilentStore>(path, 2), ranks.rank(), 2, seconds(5));
    const auto told = text_of_error<CommunicationError>([&] { const Agent agent(silent, {}); });
    require(told == fmt::format("rank {} could not start its RPC agent in 5 s: the ranks' store "
                                "does not answer, or another rank does not come",
                                ranks.rank()),
            told);
    ranks.barrier();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, RefusesTwoWorkersOfOneName) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const auto told =
        text_of_error<std::invalid_argument>([&] { const Agent agent(ranks, {.name = "same"}); });
    require(told == "two RPC workers are named 'same'", told);
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, RefusesANameOnAllRanks) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const auto told = text_of_error<std::invalid_argument>([&] {
      const Agent agent(ranks, {.name = ranks.is_first() ? "trainer" : "parameter server"});
    });
    require(told.starts_with("an RPC worker cannot be named 'parameter server': use letters"),
            told);
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, RefusesAnotherRankOfAProcess) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    Agent(ranks, {}).shutdown();
    const auto reversed = ranks.subgroup(std::array<int64_t, 2>{1, 0});
    const auto told =
        text_of_error<std::logic_error>([&] { const Agent agent(reversed.value(), {}); });
    require(contains(told, "worker 'worker0' (rank 0) was rank 1 in an earlier agent"), told);
  });
  EXPECT_THAT(ends, Each(0));
}

// The inodes of sockets that this process has open.
std::set<std::string> own_sockets() {
  std::set<std::string> sockets;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(file, error).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  return sockets;
}

// Addresses, as /proc has them, at which this process listens.
std::set<std::string> listening_addresses() {
  std::set<std::string> addresses;
  const auto sockets = own_sockets();
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode;
      if (state == "0A" && sockets.contains(inode)) {
        addresses.insert(local.substr(0, local.find(':')));
      }
    }
  }
  return addresses;
}

TEST(Agent, ListensWhereTheProcessGroupDoesAndNowhereElse) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    Agent agent(ranks, {});
    const auto addresses = listening_addresses();
    require(addresses == std::set<std::string>{"0100007F"}, "127.0.0.1 alone");
    agent.shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(Agent, ListensOnLoopbackForASingleRank) {
  const auto ends = in_processes(1, [](const Ranks& /*ranks*/) {
    setenv("GLOO_SOCKET_IFNAME", "no_such_interface", 1);
    Agent agent(Ranks(), {});
    require(listening_addresses() == std::set<std::string>{"0100007F"}, "127.0.0.1 alone");
    agent.shutdown();
  });
  EXPECT_THAT(ends, Each(0));
}

}  // namespace
}  // namespace phalanx::rpc
