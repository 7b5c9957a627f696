// SPDX-License-Identifier: Apache-2.0
// How much the ranks ask of rank 0's store, which answers one after the other: it must not grow
// faster than their number. Every rank is a thread here, and connects for real.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>
#include <vector>

#include "tests/trainer/io/temporary_folder.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "trainer/checkpoint/save.h"
#include "trainer/parallel/backends.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/ranks/ranks_group.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using Bytes = std::vector<uint8_t>;
using Keys = std::vector<std::string>;

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
  group->attach(std::move(store), process_group_maker(at::kCPU, "127.0.0.1", group->timeout));
  Ranks ranks(std::move(group));
  ranks.barrier();
  return ranks;
}

// On the host a sharded gradient goes from every rank to every other: so many connections do not fit
// in one process.
ShardingStrategy strategy_for(int64_t world_size) {
  return world_size <= 128 ? ShardingStrategy::full_shard : ShardingStrategy::no_shard;
}

void train(const Ranks& ranks) {
  using fsdp::testing::Net;
  using fsdp::testing::Pass;
  Net net;
  FullyShardedDataParallel sharded(net, ranks, strategy_for(ranks.world_size()), {});
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

Requests requests_of(const c10::intrusive_ptr<c10d::Store>& all, int64_t rank, int64_t world_size,
                     const std::filesystem::path& folder) {
  at::set_num_threads(1);
  const auto store = c10::make_intrusive<CountingStore>(all);
  Requests requests;
  const Ranks ranks = connect(store, rank, world_size);
  requests.start = store->take_requests();
  train(ranks);
  requests.steps = store->take_requests();
  save(ranks, folder);
  requests.save = store->take_requests();
  ranks.close();
  return requests;
}

std::vector<Requests> requests_of_all(int64_t world_size) {
  const TemporaryFolder folder;
  const auto all = c10::make_intrusive<c10d::HashStore>();
  std::vector<Requests> requests(static_cast<size_t>(world_size));
  std::vector<std::string> errors(requests.size());
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        requests[rank] = requests_of(all, static_cast<int64_t>(rank), world_size, folder.path());
      } catch (const std::exception& error) {
        errors[rank] = error_text(error);
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return requests;
}

int64_t most(const std::vector<Requests>& requests, int64_t Requests::*phase) {
  return std::ranges::max(requests, {}, phase).*phase;
}

/// Worlds of 1,024 ranks take minutes.
std::vector<int64_t> world_sizes() {
  if (std::getenv("PHALANX_LONG") != nullptr) return {2, 8, 64, 128, 1024};
  return {2, 8, 72};
}

// How many open files this process may have.
rlim_t allow_connections() {
  constexpr rlim_t kWanted = 1 << 17;
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit raised{.rlim_cur = kWanted, .rlim_max = std::max(kWanted, limit.rlim_max)};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return kWanted;
  limit.rlim_cur = limit.rlim_max;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit.rlim_cur;
}

TEST(StoreMessages, OfARankAreFewInAnyWorld) {
  const rlim_t files = allow_connections();
  fmt::print(
      "requests of a rank at rank 0's store (at most)\n ranks  start  steps  save  seconds\n");
  for (const int64_t world_size : world_sizes()) {
    if (world_size > 128 && files < 100 * static_cast<rlim_t>(world_size)) {
      fmt::print("{:6} SKIPPED: {} open files are too few (ulimit -n)\n", world_size, files);
      continue;
    }
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<Requests> requests = requests_of_all(world_size);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    const Requests worst{.start = most(requests, &Requests::start),
                         .steps = most(requests, &Requests::steps),
                         .save = most(requests, &Requests::save)};
    fmt::print("{:6} {:6} {:6} {:5} {:8.1f}\n", world_size, worst.start, worst.steps, worst.save,
               time.count());
    EXPECT_LE(worst.start, 16);
    EXPECT_LE(worst.steps, 16);
    EXPECT_EQ(worst.save, 0);
  }
}

}  // namespace
}  // namespace phalanx
