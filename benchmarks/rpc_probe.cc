// SPDX-License-Identifier: Apache-2.0
// Phalanx's side of benchmarks/rpc: calls between two processes, and steps of training by them.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/rate.h"
#include "benchmarks/rpc_engines.h"
#include "trainer/api/optimizer.h"
#include "trainer/launch/spawn.h"
#include "trainer/memory/memory.h"
#include "trainer/parallel/init_from_env.h"
#include "trainer/rpc/agent.h"
#include "trainer/rpc/distributed_context.h"
#include "trainer/rpc/distributed_optimizer.h"

namespace phalanx {
namespace {

using rpc::Values;

constexpr int64_t kWidth = 512;
constexpr int64_t kRows = 32;
constexpr double kRate = 0.01;
constexpr int64_t kSmallElements = 8;         // a call's cost by itself
constexpr int64_t kMiddleElements = 1 << 18;  // 1 MiB
constexpr int64_t kLargeElements = 16 << 20;  // 64 MiB
constexpr int kUnderWay = 16;                 // asynchronous calls at a time
constexpr int kLargeShare = 20;  // of the calls go with 1 MiB, and of these with 64 MiB

/// As torch.optim.SGD without momentum.
class Descent final : public Optimizer {
 public:
  double base_lr() const override { return kRate; }
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

/// The samples of a step, the same on both sides: [kRows, kWidth] each.
struct Batch {
  at::Tensor input;
  at::Tensor target;

  explicit Batch(int64_t step) {
    const at::Tensor places = at::arange(kRows * kWidth, at::kFloat).mul(0.01).add(step);
    input = places.sin().view({kRows, kWidth});
    target = places.cos().view({kRows, kWidth});
  }
};

at::Tensor loss_of(const at::Tensor& output, const Batch& batch) {
  return at::mse_loss(output, batch.target);
}

/// What worker1 keeps and serves.
class Server {
 public:
  Server() { reset(); }

  /// The weights before the first step.
  void reset() {
    const at::NoGradGuard no_grad;
    weight_.copy_(
        at::arange(kWidth * kWidth, at::kFloat).mul(0.1).sin().mul(0.01).view_as(weight_));
  }

  rpc::FunctionTable functions() {
    return {{"same", rpc::function_of([](Values values) { return values; })},
            {"take", rpc::function_of([](const Values&) { return Values{}; })},
            {"reset", rpc::function_of([this](const Values&) {
               reset();
               return Values{};
             })},
            {"layer", rpc::function_of([this](const Values& values) {
               return Values{.tensors = {at::linear(values.tensors[0], weight_)}};
             })},
            {"step", optimizer_.function()},
            {"pull", rpc::function_of(
                         [this](const Values&) { return Values{.tensors = {weight_.detach()}}; })},
            {"push", rpc::function_of([this](const Values& values) {
               optimizer_.step({values.tensors[0]});
               return Values{};
             })}};
  }

 private:
  at::Tensor weight_ = at::zeros({kWidth, kWidth}).set_requires_grad(true);
  rpc::ServedOptimizer optimizer_{
      {{.label = "all", .parameters = {{.name = "weight", .tensor = weight_}}}},
      std::make_shared<Descent>()};
};

/// The trainer's side of both ways to train.
class Trainer {
 public:
  explicit Trainer(const rpc::Agent& agent) : agent_(agent) {}

  /// The server computes, and the backward pass goes over both workers.
  double train_through_calls(int64_t step) {
    const Batch batch(step);
    const rpc::DistributedContext context(agent_);
    const Values answer = agent_.call("worker1", "layer", {.tensors = {batch.input}});
    const at::Tensor loss = loss_of(answer.tensors[0], batch);
    context.backward({loss});
    optimizer_.step();
    return loss.item<double>();
  }

  /// The trainer pulls the weights, computes, and pushes their gradients.
  double train_by_pulls(int64_t step) {
    const Batch batch(step);
    const at::Tensor weight =
        agent_.call("worker1", "pull").tensors[0].detach().set_requires_grad(true);
    const at::Tensor loss = loss_of(at::linear(batch.input, weight), batch);
    loss.backward();
    agent_.call("worker1", "push", {.tensors = {weight.grad()}});
    return loss.item<double>();
  }

 private:
  const rpc::Agent& agent_;
  rpc::DistributedOptimizer optimizer_{agent_, {"worker1"}, "step"};
};

/// By name, as the page's rows are called.
struct Results {
  std::map<std::string, double> rates;
  std::map<std::string, double> losses;

  void add(const std::string& way, const Trained& trained) {
    rates[way] = trained.rate;
    losses[way] = trained.loss;
  }
};

void measure(const rpc::Agent& agent, int64_t calls, int64_t steps, Results& results) {
  const auto exchange = [&](const char* function, int64_t elements, int64_t count) {
    const at::Tensor tensor = at::full({elements}, 1.0F);
    return rate_of(count, [&](int64_t) { agent.call("worker1", function, {.tensors = {tensor}}); });
  };
  const auto several = [&] {
    const at::Tensor tensor = at::full({kSmallElements}, 1.0F);
    std::vector<rpc::Future> pending;
    for (int i = 0; i < kUnderWay; ++i) {
      pending.push_back(agent.call_async("worker1", "same", {.tensors = {tensor}}));
    }
    for (const rpc::Future& each : pending) each.wait();
  };
  Trainer trainer(agent);
  const auto train = [&](double (Trainer::*way)(int64_t)) {
    agent.call("worker1", "reset");
    Trained trained;
    trained.rate = rate_of(steps, [&](int64_t step) { trained.loss = (trainer.*way)(step); });
    return trained;
  };
  const int64_t middle = calls / kLargeShare + 1;
  results.rates["call"] = exchange("same", kSmallElements, calls);
  results.rates["async_call"] =
      kUnderWay * rate_of(calls / kUnderWay + 1, [&](int64_t) { several(); });
  results.rates["ping_pong_1_mib"] = exchange("same", kMiddleElements, middle);
  results.rates["send_64_mib"] = exchange("take", kLargeElements, middle / kLargeShare + 1);
  results.add("step", train(&Trainer::train_through_calls));
  results.add("pull_and_push", train(&Trainer::train_by_pulls));
}

std::string json(const std::map<std::string, double>& values) {
  std::vector<std::string> members;
  for (const auto& [name, value] : values)
    members.push_back(fmt::format("\"{}\": {}", name, value));
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

void run(const Environment& environment, int64_t calls, int64_t steps) {
  at::set_num_threads(1);
  use_caching_allocator();  // as a rank of the trainer does
  World world = init_from_env(environment);
  Server server;
  rpc::Agent agent(world.ranks(), {.functions = server.functions()});
  Results results;
  if (world.ranks().is_first()) measure(agent, calls, steps, results);
  agent.shutdown();
  results.add("stages", train_by_stages(world.ranks(), steps));
  results.add("remote_table", train_with_remote_table(world.ranks(), steps));
  if (world.ranks().is_first()) {
    fmt::print("{{\"rates\": {}, \"losses\": {}}}\n", json(results.rates), json(results.losses));
  }
  world.close();
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: rpc_probe CALLS STEPS\n");
    return 2;
  }
  try {
    const int64_t calls = std::stoll(argv[1]);
    const int64_t steps = std::stoll(argv[2]);
    phalanx::spawn(2, [&](const phalanx::Environment& environment) {
      phalanx::run(environment, calls, steps);
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
