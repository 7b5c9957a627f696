// SPDX-License-Identifier: Apache-2.0
// Phalanx's side of benchmarks/rpc: what calls between two processes take.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/launch/spawn.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/rpc/agent.h"
#include "trainer/rpc/distributed_context.h"
#include "trainer/rpc/distributed_optimizer.h"

namespace phalanx {
namespace {

using rpc::Values;

constexpr int64_t kWidth = 512;
constexpr int64_t kLargeElements = 16 << 20;  // 64 MiB

/// As torch.optim.SGD without momentum.
class Descent final : public Optimizer {
 public:
  double base_lr() const override { return 1e-4; }
  void bind(std::vector<ParameterGroup> groups) override { groups_ = std::move(groups); }
  void step(double lr) override {
    for (const ParameterGroup& group : groups_) {
      for (const NamedParameter& each : group.parameters) {
        each.tensor.add_(each.tensor.grad(), -lr);
      }
    }
  }
  std::vector<ShardedTensorView> state() override { return {}; }

 private:
  std::vector<ParameterGroup> groups_;
};

// Milliseconds of one action, the median of so many.
double median_ms(int count, const std::function<void()>& action) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    action();
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void measure(const rpc::Agent& agent) {
  const at::Tensor small = at::full({8}, 1.0F);
  const at::Tensor large = at::full({kLargeElements}, 1.0F);
  const at::Tensor batch = at::full({32, kWidth}, 0.01F);
  const rpc::DistributedOptimizer optimizer(agent, {"worker1"}, "step");
  const auto call = [&] { agent.call("worker1", "same", {.tensors = {small}}); };
  const auto send = [&] { agent.call("worker1", "take", {.tensors = {large}}); };
  const auto step = [&] {
    const rpc::DistributedContext context(agent);
    const Values answer = agent.call("worker1", "layer", {.tensors = {batch}});
    context.backward({answer.tensors[0].square().mean()});
    optimizer.step();
  };
  median_ms(20, call);
  median_ms(2, send);
  median_ms(20, step);
  fmt::print("{{\"call_ms\": {}, \"send_64_mib_ms\": {}, \"step_ms\": {}}}\n",
             median_ms(1000, call), median_ms(20, send), median_ms(300, step));
}

void run(const Environment& environment) {
  World world = init_from_env(environment);
  const at::Tensor weight = at::full({kWidth, kWidth}, 0.01F).set_requires_grad(true);
  rpc::ServedOptimizer optimizer(
      {{.label = "all", .parameters = {{.name = "weight", .tensor = weight}}}},
      std::make_shared<Descent>());
  rpc::Agent agent(
      world.ranks(),
      {.functions = {{"same", rpc::function_of([](Values values) { return values; })},
                     {"take", rpc::function_of([](const Values&) { return Values{}; })},
                     {"layer", rpc::function_of([weight](const Values& values) {
                        return Values{.tensors = {at::linear(values.tensors[0], weight)}};
                      })},
                     {"step", optimizer.function()}}});
  if (world.ranks().is_first()) measure(agent);
  agent.shutdown();
  world.close();
}

}  // namespace
}  // namespace phalanx

int main() {
  try {
    phalanx::spawn(2, phalanx::run);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
