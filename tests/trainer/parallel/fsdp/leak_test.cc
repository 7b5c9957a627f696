// SPDX-License-Identifier: Apache-2.0
// Nothing of a step outlives it: a thousand of them take the memory of the first ones.

#include <ATen/core/grad_mode.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <torch/csrc/autograd/function.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tests/trainer/parallel/fsdp/descend.h"
#include "tests/trainer/parallel/fsdp/models.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/fsdp/fsdp.h"

namespace phalanx::fsdp::testing {
namespace {

using torch::autograd::Node;

/// Until then the process groups' records of their last collectives are full.
constexpr int kWarmUp = 400;
constexpr int kSteps = 1000;
/// 80 bytes a step: less than a tensor or a node of the graph takes. What runs on other threads at
/// the moment makes the heap differ by some of it.
constexpr int64_t kHeapSlack = 80 * (kSteps - kWarmUp);
constexpr int64_t kResidentSlack = 1 << 20;

struct Memory {
  int64_t resident = 0;
  int64_t in_use = 0;  ///< On the heap.
};

Memory memory() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;  // the second is what is resident
  return {.resident = pages * ::sysconf(_SC_PAGESIZE),
          .in_use = static_cast<int64_t>(::mallinfo2().uordblks)};
}

/// What a step makes, known weakly.
class Traces {
 public:
  void keep_graph(const at::Tensor& result) {
    seen_.clear();  // nodes of graphs that are gone may have had the same addresses
    keep_node(result.grad_fn());
  }
  void keep_tensor(const at::Tensor& tensor) {
    tensors_.emplace_back(tensor.getIntrusivePtr());
    storages_.emplace_back(tensor.storage().getWeakStorageImpl());
  }

  size_t nodes() const { return nodes_.size(); }
  size_t alive() const {
    size_t alive = 0;
    for (const auto& node : nodes_) alive += node.expired() ? 0 : 1;
    for (const auto& tensor : tensors_) alive += tensor.expired() ? 0 : 1;
    for (const auto& storage : storages_) alive += storage.expired() ? 0 : 1;
    return alive;
  }

 private:
  // Parameters' accumulators stay: they are held for the hooks on them.
  void keep_node(const std::shared_ptr<Node>& node) {
    if (!node || !seen_.insert(node.get()).second) return;
    if (node->name() != "torch::autograd::AccumulateGrad") nodes_.emplace_back(node);
    for (const auto& edge : node->next_edges()) keep_node(edge.function);
  }

  std::unordered_set<Node*> seen_;
  std::vector<std::weak_ptr<Node>> nodes_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> tensors_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
};

/// Some steps accumulate and some evaluate: these paths may leak too.
void take_step(Net& net, FullyShardedDataParallel& fsdp, int step, Traces* traces) {
  const at::Tensor input = Net::wave({3, kInputs}, step).to(at::kFloat);
  const Pass pass{.with_optional = step % 2 == 0, .calls_twice = true};
  const int micro_batches = step % 8 == 0 ? 2 : 1;
  for (int m = 0; m < micro_batches; ++m) {
    const at::Tensor loss =
        fsdp.forward([&] { return net.loss(input, pass); }, m + 1 == micro_batches);
    if (traces != nullptr) {
      traces->keep_graph(loss);
      traces->keep_tensor(loss);
    }
    loss.backward();
  }
  for (const auto& local : fsdp.local_parameters()) {
    const at::Tensor& gradient = local.tensor.grad();
    if (traces != nullptr && gradient.defined()) traces->keep_tensor(gradient);
  }
  descend(fsdp.local_parameters());
  if (step % 16 != 0) return;
  const at::NoGradGuard no_grad;
  fsdp.forward([&] { return net.loss(input, pass); }, /*synchronize=*/false);
}

// A thread of the process group's may still hold the tensor of the last collective for a moment.
void wait_for_end(const Traces& traces) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (traces.alive() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void require_little_more(int64_t before, int64_t now, int64_t slack, const std::string& what) {
  require(now - before <= slack,
          fmt::format("{} stays within {} bytes: {} after {} steps, {} after {}", what, slack,
                      before, kWarmUp, now, kSteps));
}

void train(const Ranks& ranks, ShardingStrategy strategy, const FsdpOptions& options) {
  Net net;
  FullyShardedDataParallel fsdp(net, ranks, strategy, options);
  Memory before;
  for (int step = 1; step <= kSteps; ++step) {
    take_step(net, fsdp, step, nullptr);
    if (step == kWarmUp) before = memory();
  }
  const Memory now = memory();
// A sanitizer's heap is its own, and keeps what is freed.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  require_little_more(before.in_use, now.in_use, kHeapSlack, "the heap");
  require_little_more(before.resident, now.resident, kResidentSlack, "what is resident");
#endif
  Traces traces;
  for (int step = 0; step < 2; ++step) take_step(net, fsdp, step, &traces);
  require(traces.nodes() > 100, "the graph is known");
  wait_for_end(traces);
  require(traces.alive() == 0, fmt::format("{} nodes are gone with the step, except {}",
                                           traces.nodes(), traces.alive()));
}

std::string failure(ShardingStrategy strategy, const FsdpOptions& options) {
  return in_ranks(2, [&](World& world) { train(world.ranks(), strategy, options); }).message;
}

/// Fewer units take less time.
FsdpOptions some_units() {
  FsdpOptions options;
  options.auto_wrap = {.policy = WrapPolicy::by_name, .min_params = 1, .names = {"Nest", "first"}};
  return options;
}

TEST(FsdpLeak, AThousandStepsTakeTheMemoryOfTheFirst) {
  EXPECT_EQ(failure(ShardingStrategy::full_shard, some_units()), "");
}

TEST(FsdpLeak, NorDoCopiesTakeMore) {
  FsdpOptions options = some_units();
  options.shard_group_size = 1;
  options.forward_prefetch = true;
  options.accumulated_gradients = AccumulatedGradients::sharded;
  EXPECT_EQ(failure(ShardingStrategy::hybrid_shard, options), "");
}

}  // namespace
}  // namespace phalanx::fsdp::testing
