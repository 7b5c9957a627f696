// SPDX-License-Identifier: Apache-2.0
// How much the ranks ask of rank 0's store, which answers one after the other: it must not grow
// faster than their number. Ranks are threads here, of several processes, and connect for real.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "tests/long.h"
#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "trainer/base/descriptor.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/host/listener.h"
#include "trainer/host/local_address.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/parallel/rendezvous/backends.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/stores/tcp_store.h"

namespace phalanx {
namespace {

using Bytes = std::vector<uint8_t>;
using Keys = std::vector<std::string>;

constexpr auto kTimeout = std::chrono::minutes(10);
// So that their connections, of a rank that trains one with every other, are fewer than the files
// that a process may open.
constexpr int64_t kRanksOfProcess = 64;
// Larger worlds only start: two cores take hours for the messages of their collectives.
constexpr int64_t kMostThatTrain = 256;

/// Counts the requests that TCPStore would send for one rank.
class CountingStore final : public c10d::Store {
 public:
  explicit CountingStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::intrusive_ptr<c10d::Store>::reclaim_copy(this);
  }
  void set(const std::string& key, const Bytes& value) override { one().set(key, value); }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& value) override {
    return one().compareSet(key, expected, value);
  }
  // It waits for the key first.
  Bytes get(const std::string& key) override { return (one(), one()).get(key); }
  int64_t add(const std::string& key, int64_t value) override { return one().add(key, value); }
  bool deleteKey(const std::string& key) override { return one().deleteKey(key); }
  bool check(const Keys& keys) override { return one().check(keys); }
  int64_t getNumKeys() override { return one().getNumKeys(); }
  bool hasExtendedApi() const override { return true; }
  // It waits for the keys first.
  std::vector<Bytes> multiGet(const Keys& keys) override { return (one(), one()).multiGet(keys); }
  void wait(const Keys& keys) override { one().wait(keys); }
  void wait(const Keys& keys, const std::chrono::milliseconds& timeout) override {
    one().wait(keys, timeout);
  }

  int64_t take_requests() { return requests_.exchange(0); }

 private:
  c10d::Store& one() {
    ++requests_;
    return *store_;
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::atomic<int64_t> requests_ = 0;
};

/// Requests of one rank.
struct Requests {
  int64_t start = 0;
  int64_t steps = 0;
  int64_t save = 0;
};

Ranks connect(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t world_size) {
  auto group = std::make_shared<Ranks::Group>();
  group->rank = rank;
  group->world_size = world_size;
  group->hosts.assign(static_cast<size_t>(world_size), 0);
  group->find_place_on_host();
  group->attach(std::move(store), process_group_maker(at::kCPU, "127.0.0.1"));
  Ranks ranks(std::move(group));
  ranks.barrier();
  return ranks;
}

void train(const Ranks& ranks) {
  using fsdp::testing::Net;
  using fsdp::testing::Pass;
  Net net;
  FullyShardedDataParallel sharded(net, ranks, ShardingStrategy::full_shard, {});
  const at::Tensor rows = Net::wave({3, fsdp::testing::kInputs}, 0).to(at::kFloat);
  for (int step = 0; step < 2; ++step) {
    sharded.forward([&] { return net.loss(rows, Pass{}); }).backward();
  }
}

void save(const Ranks& ranks, const std::filesystem::path& folder) {
  Snapshot snapshot;
  snapshot.model = {whole_tensor("weight", fsdp::testing::Net::wave({3, 5}, 0))};
  save_checkpoint(folder, snapshot, {}, ranks);
}

Requests requests_of(uint16_t port, int64_t rank, int64_t world_size,
                     const std::filesystem::path& folder) {
  at::set_num_threads(1);
  const auto store = c10::make_intrusive<CountingStore>(
      open_tcp_store({.host = kLoopbackAddress, .port = port}, {}, kTimeout));
  Requests requests;
  const Ranks ranks = connect(store, rank, world_size);
  requests.start = store->take_requests();
  if (world_size > kMostThatTrain) return requests;
  train(ranks);
  requests.steps = store->take_requests();
  save(ranks, folder);
  requests.save = store->take_requests();
  ranks.close();
  return requests;
}

/// The most of each.
Requests most(const Requests& left, const Requests& right) {
  return {.start = std::max(left.start, right.start),
          .steps = std::max(left.steps, right.steps),
          .save = std::max(left.save, right.save)};
}

/// Some ranks of a world, in this process.
Requests most_of(int64_t first, int64_t count, uint16_t port, int64_t world_size,
                 const std::filesystem::path& folder) {
  std::vector<Requests> requests(static_cast<size_t>(count));
  std::vector<std::thread> ranks;
  for (int64_t i = 0; i < count; ++i) {
    ranks.emplace_back([&, i] {
      requests[static_cast<size_t>(i)] = requests_of(port, first + i, world_size, folder);
    });
  }
  for (auto& rank : ranks) rank.join();
  return std::accumulate(requests.begin(), requests.end(), Requests(), most);
}

/// The same in a process of its own, which writes what it has found into a pipe. A rank that fails
/// ends it by an exception that nobody catches.
pid_t start_process(const Pipe& result, const std::function<Requests()>& count) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const Requests requests = count();
  const bool is_written =
      ::write(result.write_end.number(), &requests, sizeof(requests)) == sizeof(requests);
  ::_exit(is_written ? 0 : 1);
}

Requests most_of_world(int64_t world_size) {
  const TemporaryFolder folder;
  Listener listener = listen_at(kLoopbackAddress, 0).value();
  const Pipe results = make_pipe();
  std::vector<pid_t> children;
  for (int64_t first = 0; first < world_size; first += kRanksOfProcess) {
    const int64_t count = std::min(kRanksOfProcess, world_size - first);
    children.push_back(start_process(
        results, [&] { return most_of(first, count, listener.port, world_size, folder.path()); }));
  }
  const auto server =
      open_tcp_store({.host = kLoopbackAddress, .port = listener.port},
                     {.is_here = true, .listen_fd = listener.socket.release()}, kTimeout);
  Requests worst;
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    Requests of_child;
    EXPECT_EQ(::read(results.read_end.number(), &of_child, sizeof(of_child)),
              static_cast<ssize_t>(sizeof(of_child)));
    worst = most(worst, of_child);
  }
  return worst;
}

std::vector<int64_t> world_sizes() {
  if (runs_long_tests()) return {2, 8, 128, 256, 1024};
  return {2, 8, 72};
}

TEST(StoreMessages, OfARankAreFewInAnyWorld) {
  fmt::print(
      "requests of a rank at rank 0's store (at most)\n ranks  start  steps  save  seconds\n");
  for (const int64_t world_size : world_sizes()) {
    const auto begin = std::chrono::steady_clock::now();
    const Requests worst = most_of_world(world_size);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    fmt::print("{:6} {:6} {:6} {:5} {:8.1f}\n", world_size, worst.start, worst.steps, worst.save,
               time.count());
    EXPECT_GT(worst.start, 0);
    EXPECT_LE(worst.start, 16);
    EXPECT_LE(worst.steps, 16);
    EXPECT_EQ(worst.save, 0);
  }
}

}  // namespace
}  // namespace phalanx
