// SPDX-License-Identifier: Apache-2.0
// One rank that trains with synchronized batch normalization, for batch_norm_parity.py.
//
//   batch_norm_probe ddp|full_shard SAMPLES
//
// SAMPLES: for each step and rank how many samples it has, as JSON. Rank 0 prints the losses, and
// parameters and buffers after the last step.

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "trainer/api/unit.h"
#include "trainer/parallel/batch_norm/batch_norm_1d.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/fsdp/fsdp.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx {
namespace {

constexpr double kLearningRate = 0.1;
constexpr int64_t kChannels = 3;
constexpr int64_t kPlaces = 4;

// Values that Python computes alike.
at::Tensor wave(at::IntArrayRef shape, double phase) {
  return torch::sin(torch::arange(c10::multiply_integers(shape), torch::kDouble) * 0.37 + phase)
      .view(shape);
}

struct BlockImpl : torch::nn::Module, Unit {
  BlockImpl() {
    linear = register_module("linear", torch::nn::Linear(kChannels * kPlaces, 6));
    norm = register_module("norm", BatchNorm1d(6));
  }
  at::Tensor forward(const at::Tensor& input) {
    return torch::tanh(norm->forward(linear->forward(input)));
  }
  torch::nn::Linear linear{nullptr};
  BatchNorm1d norm{nullptr};
};
UNIT(Block);

struct Net : torch::nn::Module {
  Net() {
    const auto cumulative = torch::nn::BatchNormOptions(kChannels).momentum(std::nullopt);
    outer = register_module("outer", torch::nn::BatchNorm1d(cumulative));
    block = register_module("block", Block());
    last = register_module("last", torch::nn::Linear(6, 2));
    to(torch::kDouble);
    const at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) parameter.copy_(wave(parameter.sizes(), phase++));
  }
  at::Tensor forward(const at::Tensor& input) {
    return last->forward(block(outer->forward(input).flatten(1)));
  }
  torch::nn::BatchNorm1d outer{nullptr};
  Block block{nullptr};
  torch::nn::Linear last{nullptr};
};

/// An engine, and the tensors that its optimizer moves.
struct Wrapped {
  std::unique_ptr<ParallelEngine> engine;
  std::vector<at::Tensor> parameters;
};

Wrapped wrap(Net& net, const std::string& strategy, const Ranks& ranks) {
  if (strategy == "ddp") {
    return {
        .engine = prepare_ddp(net, ranks, {}, /*sync_module_states=*/true, /*sync_batchnorm=*/true),
        .parameters = net.parameters()};
  }
  auto fsdp = prepare_fsdp(net, ranks, ShardingStrategy::full_shard, {},
                           /*sync_module_states=*/true, /*placement=*/{}, /*sync_batchnorm=*/true);
  Wrapped wrapped;
  for (const auto& local : fsdp->local_parameters()) wrapped.parameters.push_back(local.tensor);
  wrapped.engine = std::move(fsdp);
  return wrapped;
}

nlohmann::json values_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().to(at::kDouble).contiguous();
  const auto* const first = values.const_data_ptr<double>();
  return std::vector<double>(first, first + values.numel());
}

void train(const std::string& strategy, const std::vector<std::vector<int64_t>>& samples) {
  World world = init_from_env();
  const Ranks& ranks = world.ranks();
  Net net;
  Wrapped wrapped = wrap(net, strategy, ranks);
  nlohmann::json result;
  for (std::size_t step = 0; step < samples.size(); ++step) {
    const auto own = samples[step].begin() + ranks.rank();
    const int64_t begin = std::accumulate(samples[step].begin(), own, int64_t{0});
    const int64_t total = std::accumulate(own, samples[step].end(), begin);
    const at::Tensor whole = wave({total, kChannels, kPlaces}, static_cast<double>(step));
    const at::Tensor part = whole.narrow(0, begin, *own);
    const auto pass = [&] { return std::vector{net.forward(part)}; };
    const at::Tensor output = wrapped.engine->run_tensors(pass, /*synchronize=*/true).front();
    const at::Tensor loss = output.square().sum() / total;
    (loss * ranks.world_size()).backward();
    const at::Tensor of_all = loss.detach().clone();
    ranks.all_reduce(of_all);
    result["losses"].push_back(of_all.item<double>());
    const at::NoGradGuard no_grad;
    for (auto& parameter : wrapped.parameters) {
      if (!parameter.grad().defined()) continue;
      parameter.add_(parameter.grad(), -kLearningRate);
      parameter.mutable_grad().reset();
    }
  }
  wrapped.engine->summon_full_params([&] {
    for (const auto& item : net.named_parameters()) {
      result["tensors"][item.key()] = values_of(item.value());
    }
  });
  for (const auto& item : net.named_buffers()) {
    result["tensors"][item.key()] = values_of(item.value());
  }
  if (ranks.is_first()) std::puts(result.dump().c_str());
  wrapped.engine.reset();
  world.close();
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    phalanx::train(argv[1], nlohmann::json::parse(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
