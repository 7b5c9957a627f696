// SPDX-License-Identifier: Apache-2.0
// Gradients through several workers, beside those of one process.

#include "trainer/rpc/distributed_context.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/rpc/processes.h"
#include "trainer/rpc/agent.h"
#include "trainer/rpc/distributed_optimizer.h"
#include "trainer/rpc/rpc_error.h"

namespace phalanx::rpc {
namespace {

using ::testing::Each;

// Values that rounding shows in.
at::Tensor parameter(int64_t rows, int64_t columns, double step) {
  return (at::arange(rows * columns).view({rows, columns}) * step).sin().set_requires_grad(true);
}
at::Tensor batch(int64_t number) {
  return (at::arange(6).view({2, 3}).to(at::kFloat) + static_cast<double>(number)).cos();
}

/// Two layers, the first of which lies on another worker.
struct Parameters {
  at::Tensor first = parameter(4, 3, 0.3);
  at::Tensor second = parameter(1, 4, 0.7);
};

at::Tensor first_layer(const Parameters& parameters, const at::Tensor& input) {
  return at::linear(input, parameters.first).tanh();
}
at::Tensor loss_of(const Parameters& parameters, const at::Tensor& hidden) {
  return at::linear(hidden, parameters.second).square().mean();
}

/// Plain gradient descent, as an optimizer of the library.
class Descent final : public Optimizer {
 public:
  double base_lr() const override { return 0.1; }
  void bind(std::vector<ParameterGroup> groups) override { groups_ = std::move(groups); }
  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (const ParameterGroup& group : groups_) {
      for (const NamedParameter& each : group.parameters) {
        if (each.tensor.grad().defined()) each.tensor.sub_(each.tensor.grad() * lr);
      }
    }
  }
  std::vector<ShardedTensorView> state() override { return {}; }

 private:
  std::vector<ParameterGroup> groups_;
};

std::vector<ParameterGroup> group_of(const at::Tensor& tensor) {
  return {{.label = "all", .parameters = {{.name = "weight", .tensor = tensor}}}};
}

// What a worker serves that has the first layer.
FunctionTable functions_of(const Parameters& parameters, ServedOptimizer& optimizer) {
  return {{"first layer", function_of([&](const Values& values) {
             return Values{.tensors = {first_layer(parameters, values.tensors[0])}};
           })},
          {"gradient", function_of([&](const Values&) {
             const std::vector<at::Tensor> weights{parameters.first};
             return Values{.tensors = {gradients_of_call(weights)[0]}};
           })},
          {"weight", function_of([&](const Values&) {
             return Values{.tensors = {parameters.first.detach()}};
           })},
          {"step", optimizer.function()}};
}

// Rank 0 has the second layer and `act`s, the last rank the first one.
Ends with_layers(int64_t processes,
                 const std::function<void(const Agent&, const Parameters&)>& act) {
  return in_processes(processes, [&](const Ranks& ranks) {
    const Parameters parameters;
    ServedOptimizer optimizer(group_of(parameters.first), std::make_shared<Descent>());
    FunctionTable functions = functions_of(parameters, optimizer);
    std::unique_ptr<Agent> agent;
    functions["through"] = function_of([&agent](Values values) {
      return agent->call_async("worker2", "first layer", std::move(values));
    });
    agent = std::make_unique<Agent>(ranks, AgentOptions{.functions = std::move(functions)});
    ranks.barrier();  // All ranks have set `agent`.
    if (ranks.is_first()) act(*agent, parameters);
    agent->shutdown();
  });
}

TEST(DistributedContext, HasTheGradientsOfOneProcess) {
  const auto ends = with_layers(2, [](const Agent& agent, const Parameters& parameters) {
    Parameters local;
    loss_of(local, first_layer(local, batch(1))).backward();
    const DistributedContext context(agent);
    const at::Tensor hidden =
        agent.call("worker1", "first layer", {.tensors = {batch(1)}}).tensors[0];
    context.backward({loss_of(parameters, hidden)});
    const std::vector<at::Tensor> own{parameters.second, parameters.first};
    const auto gradients = context.gradients(own);
    require(gradients[0].equal(local.second.grad()), "the gradient here has the same bits");
    require(!gradients[1].defined(), "there is none of what is not used here");
    require(!parameters.second.grad().defined(), "grad() stays");
    require(agent.call("worker1", "gradient").tensors[0].equal(local.first.grad()),
            "the gradient there has the same bits");
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(DistributedContext, GoesThroughAWorkerThatForwards) {
  const auto ends = with_layers(3, [](const Agent& agent, const Parameters& parameters) {
    Parameters local;
    at::Tensor input = batch(2).set_requires_grad(true);
    loss_of(local, first_layer(local, input)).backward();
    const at::Tensor sent = batch(2).set_requires_grad(true);
    const DistributedContext context(agent);
    const at::Tensor hidden = agent.call("worker1", "through", {.tensors = {sent}}).tensors[0];
    context.backward({loss_of(parameters, hidden)});
    require(agent.call("worker2", "gradient").tensors[0].equal(local.first.grad()), "there");
    const std::vector<at::Tensor> here{sent};
    require(context.gradients(here)[0].equal(input.grad()), "of what was sent");
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(DistributedContext, AddsUpOverBackwardPasses) {
  const auto ends = with_layers(2, [](const Agent& agent, const Parameters& parameters) {
    Parameters local;
    const at::Tensor own_loss = loss_of(local, first_layer(local, batch(3)));
    own_loss.backward({}, /*retain_graph=*/true);
    own_loss.backward();
    const DistributedContext context(agent);
    const at::Tensor loss = loss_of(
        parameters, agent.call("worker1", "first layer", {.tensors = {batch(3)}}).tensors[0]);
    context.backward({loss}, /*retain_graph=*/true);
    context.backward({loss});
    require(agent.call("worker1", "gradient").tensors[0].equal(local.first.grad()), "twice");
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(DistributedContext, GoesBackThroughAReference) {
  const auto ends = with_layers(2, [](const Agent& agent, const Parameters& parameters) {
    Parameters local;
    loss_of(local, first_layer(local, batch(4))).backward();
    const DistributedContext context(agent);
    const RemoteReference hidden = agent.remote("worker1", "first layer", {.tensors = {batch(4)}});
    context.backward({loss_of(parameters, hidden.to_here().tensors[0])});
    require(agent.call("worker1", "gradient").tensors[0].equal(local.first.grad()), "there");
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(DistributedOptimizer, TrainsAsOneProcessDoes) {
  const auto ends = with_layers(2, [](const Agent& agent, const Parameters& parameters) {
    Parameters local;
    ServedOptimizer own_first(group_of(local.first), std::make_shared<Descent>());
    ServedOptimizer own_second(group_of(local.second), std::make_shared<Descent>());
    ServedOptimizer second(group_of(parameters.second), std::make_shared<Descent>());
    const DistributedOptimizer first(agent, {"worker1"}, "step");
    for (int64_t step = 0; step < 20; ++step) {
      const double factor = 1 - 0.03 * static_cast<double>(step);
      loss_of(local, first_layer(local, batch(step))).backward();
      for (auto [optimizer, tensor] :
           {std::pair{&own_first, &local.first}, std::pair{&own_second, &local.second}}) {
        const at::Tensor gradient = tensor->grad();
        tensor->mutable_grad().reset();
        optimizer->step({gradient}, factor);
      }
      const DistributedContext context(agent);
      context.backward(
          {loss_of(parameters,
                   agent.call("worker1", "first layer", {.tensors = {batch(step)}}).tensors[0])});
      first.step(factor);
      second.step(context.gradients(second.parameters()), factor);
    }
    require(parameters.second.equal(local.second), "the same bits here");
    require(agent.call("worker1", "weight").tensors[0].equal(local.first), "the same bits there");
    require(!local.first.equal(Parameters{}.first), "they have moved");
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(GradientsOfCall, NeedAContextOfTheCaller) {
  const auto ends = with_layers(2, [](const Agent& agent, const Parameters& /*parameters*/) {
    const auto told = text_of_error<RemoteError>([&] { agent.call("worker1", "gradient"); });
    require(told.ends_with("gradients_of_call: the caller is in no DistributedContext"), told);
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(DistributedContext, ThrowsErrorsOfThisWorkerAsTheyAre) {
  const auto ends = with_layers(2, [](const Agent& agent, const Parameters& /*parameters*/) {
    const DistributedContext context(agent);
    const at::Tensor hidden =
        agent.call("worker1", "first layer", {.tensors = {batch(0)}}).tensors[0];
    const auto told = text_of_error<c10::Error>([&] { context.backward({hidden}); });
    require(told.find("is not a scalar") != std::string::npos, told);
  });
  EXPECT_THAT(ends, Each(0));
}

/// What has failed of a backward pass in which worker1 sends itself that signal.
std::string failure_of_backward(const Agent& agent, const Parameters& parameters) {
  const DistributedContext context(agent);
  const at::Tensor hidden =
      agent.call("worker1", "first layer", {.tensors = {batch(0)}}).tensors[0];
  return text_of_error<WorkerLost>([&] { context.backward({loss_of(parameters, hidden)}); });
}

// Two workers, of which worker1 sends itself the signal in the backward pass.
Ends with_signal_in_backward(int signal, std::chrono::milliseconds timeout) {
  return in_processes(2, [&](const Ranks& ranks) {
    const Parameters parameters;
    const auto first = [&](const Values& values) {
      const at::Tensor hidden = first_layer(parameters, values.tensors[0]);
      hidden.register_hook([signal](const at::Tensor& /*gradient*/) { kill(getpid(), signal); });
      return Values{.tensors = {hidden}};
    };
    const Agent agent(ranks,
                      {.functions = {{"first layer", function_of(first)}}, .timeout = timeout});
    if (!ranks.is_first()) std::this_thread::sleep_for(std::chrono::minutes(5));
    const std::string told = failure_of_backward(agent, parameters);
    require(told.starts_with("the backward pass failed, and these workers do not answer: worker1 "
                             "(rank 1): "),
            told);
  });
}

TEST(DistributedContext, NamesAWorkerThatDiesInTheBackwardPass) {
  EXPECT_EQ(with_signal_in_backward(SIGKILL, std::chrono::seconds(60)), (Ends{0, -SIGKILL}));
}

TEST(DistributedContext, NamesAWorkerThatIsStoppedInTheBackwardPass) {
  EXPECT_EQ(with_signal_in_backward(SIGSTOP, std::chrono::seconds(3)), (Ends{0, -SIGKILL}));
}

TEST(DistributedContext, SaysThatAnAnswerMayBeUnused) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const Parameters parameters;
    const auto first = [&](const Values& values) {
      return Values{.tensors = {first_layer(parameters, values.tensors[0])}};
    };
    const Agent agent(ranks, {.functions = {{"first layer", function_of(first)}},
                              .timeout = std::chrono::seconds(3)});
    if (ranks.is_first()) {
      const DistributedContext context(agent);
      const at::Tensor used =
          agent.call("worker1", "first layer", {.tensors = {batch(0)}}).tensors[0];
      const Values unused = agent.call("worker1", "first layer", {.tensors = {batch(1)}});
      const auto told =
          text_of_error<WorkerLost>([&] { context.backward({loss_of(parameters, used)}); });
      require(told ==
                  "the backward pass was not over within the timeout of 3 s, and all workers "
                  "answer: does each remote answer that needs a gradient take part in the loss?",
              told);
    }
    ranks.barrier();
  });
  EXPECT_THAT(ends, Each(0));
}

TEST(DistributedContext, NamesAWorkerThatDiesBeforeTheBackwardPass) {
  const auto ends = in_processes(2, [](const Ranks& ranks) {
    const Parameters parameters;
    ServedOptimizer optimizer(group_of(parameters.first), std::make_shared<Descent>());
    FunctionTable functions = functions_of(parameters, optimizer);
    functions["die"] = function_of([](const Values&) {
      kill(getpid(), SIGKILL);
      return Values{};
    });
    Agent agent(ranks, {.functions = std::move(functions)});
    if (!ranks.is_first()) std::this_thread::sleep_for(std::chrono::minutes(5));
    const DistributedContext context(agent);
    const at::Tensor loss = loss_of(
        parameters, agent.call("worker1", "first layer", {.tensors = {batch(0)}}).tensors[0]);
    text_of_error<WorkerLost>([&] { agent.call("worker1", "die"); });
    const auto told = text_of_error<WorkerLost>([&] { context.backward({loss}); });
    require(told.find("worker1 (rank 1)") != std::string::npos, told);
  });
  EXPECT_EQ(ends, (Ends{0, -SIGKILL}));
}

}  // namespace
}  // namespace phalanx::rpc
