// SPDX-License-Identifier: Apache-2.0
// Trains a small module in prepare_ddp with a loop of its own, for mlp_parity.py: one rank.
//
//   ddp_probe FOLDER STEPS ACCUMULATION [OPTION ...]
//
// With `uneven` a rank has three steps fewer than the one before, with `first_ends_first` three
// more: the loop runs in join. With `epochs` it runs twice, in a join each. The module has a buffer
// that each rank moves differently, and, with the option `extra`, a layer that only every other
// step uses. Writes FOLDER/weights.RANK and FOLDER/losses.RANK.

#include <ATen/core/grad_mode.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "tests/trainer/parallel/ddp_options_of.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/parallel/ddp/ddp.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx {
namespace {

constexpr double kLearningRate = 0.05;
const std::string kCommHook = "comm_hook=";

// Values that Python computes alike.
at::Tensor wave(at::IntArrayRef shape, double phase) {
  return torch::sin(torch::arange(c10::multiply_integers(shape), torch::kFloat) * 0.37 + phase)
      .view(shape);
}

struct Mlp : torch::nn::Module {
  Mlp() {
    first = register_module("first", torch::nn::Linear(10, 16));
    second = register_module("second", torch::nn::Linear(16, 16));
    extra = register_module("extra", torch::nn::Linear(16, 16));
    last = register_module("last", torch::nn::Linear(16, 4));
    shift = register_buffer("shift", torch::zeros({4}));
    const at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      parameter.copy_(wave(parameter.sizes(), phase++) * 0.3);
    }
  }

  at::Tensor forward(const at::Tensor& input, bool with_extra, double move) {
    shift.add_(move);
    at::Tensor hidden = torch::relu(first->forward(input));
    hidden = torch::relu(second->forward(hidden));
    if (with_extra) hidden = torch::relu(extra->forward(hidden));
    return last->forward(hidden) + shift;
  }

  torch::nn::Linear first{nullptr}, second{nullptr}, extra{nullptr}, last{nullptr};
  at::Tensor shift;
};

struct Arguments {
  std::string folder;
  int64_t steps = 0;
  int64_t accumulation = 1;
  std::set<std::string> options;
};

// Reads the option `comm_hook={...}`, with fields of the config.
DdpOptions options_of_hook(const std::set<std::string>& options) {
  const auto found = options.lower_bound(kCommHook);
  if (found == options.end() || !found->starts_with(kCommHook)) return {};
  return ddp_options_of("comm_hook: " + found->substr(kCommHook.size()));
}

DdpOptions ddp_options(const std::set<std::string>& options) {
  DdpOptions ddp = options_of_hook(options);
  ddp.find_unused_parameters = options.contains("find_unused_parameters");
  ddp.static_graph = options.contains("static_graph");
  ddp.gradient_as_bucket_view = options.contains("gradient_as_bucket_view");
  ddp.broadcast_buffers = !options.contains("no_broadcast_buffers");
  if (options.contains("small_buckets")) ddp.bucket_cap_mb = 0.0005;
  return ddp;
}

// As mlp_peer.py's.
int64_t steps_of(const Arguments& arguments, const Ranks& ranks) {
  if (!arguments.options.contains("uneven")) return arguments.steps;
  const bool first_ends_first = arguments.options.contains("first_ends_first");
  return arguments.steps -
         3 * (first_ends_first ? ranks.world_size() - 1 - ranks.rank() : ranks.rank());
}

UnevenInputs uneven_inputs(const std::set<std::string>& options) {
  return {.divide_by_initial_world_size = !options.contains("by_remaining"),
          .enable = options.contains("uneven"),
          .throw_on_early_termination = options.contains("throws")};
}

void train(const Arguments& arguments) {
  World world = init_from_env();
  const Ranks& ranks = world.ranks();
  const auto rank = static_cast<double>(ranks.rank());
  Mlp model;
  const at::ScalarType type = arguments.options.contains("double") ? torch::kDouble : torch::kFloat;
  model.to(type);
  // The ranks begin at different places; rank 0's weights then go to all, or each keeps its own.
  const bool synchronize = !arguments.options.contains("no_init_sync");
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : model.parameters()) parameter.add_(0.01 * rank);
  }
  auto ddp = prepare_ddp(model, ranks, ddp_options(arguments.options), synchronize);
  std::ofstream losses(arguments.folder + "/losses." + std::to_string(ranks.rank()));
  const auto train_step = [&](int64_t step) {
    const bool with_extra = arguments.options.contains("always") ||
                            (arguments.options.contains("extra") && step % 2 == 0);
    for (int64_t micro = 0; micro < arguments.accumulation; ++micro) {
      const auto phase = static_cast<double>(step * 7 + micro) + 0.5 * rank;
      const at::Tensor input = wave({6, 10}, phase).to(type);
      const at::Tensor target = wave({6, 4}, phase + 1).to(type);
      const bool last = micro + 1 == arguments.accumulation;
      const at::Tensor output =
          ddp->forward([&] { return model.forward(input, with_extra, 0.01 * (rank + 1)); }, last);
      const at::Tensor loss = (output - target).square().mean() / arguments.accumulation;
      loss.backward();
      std::array<char, 40> text{};
      std::snprintf(text.data(), text.size(), "%.9g\n", loss.item<double>());
      losses << text.data();
    }
    const at::NoGradGuard no_grad;
    for (auto& parameter : model.parameters()) {
      if (!parameter.grad().defined()) continue;
      parameter.add_(parameter.grad(), -kLearningRate);
      parameter.mutable_grad().reset();
    }
    ddp->after_update();
  };
  for (int64_t epoch = 0; epoch < (arguments.options.contains("epochs") ? 2 : 1); ++epoch) {
    const auto train_epoch = [&] {
      const int64_t first = epoch * arguments.steps;
      for (int64_t step = 0; step < steps_of(arguments, ranks); ++step) train_step(first + step);
    };
    try {
      ddp->join(train_epoch, uneven_inputs(arguments.options));
    } catch (const InputsRanOut&) {
      losses << "ended\n";
    }
  }
  std::vector<ShardedTensorView> views;
  for (const auto& item : model.named_parameters()) {
    views.push_back(whole_tensor(item.key(), item.value()));
  }
  for (const auto& item : model.named_buffers()) {
    views.push_back(whole_tensor(item.key(), item.value()));
  }
  write_safetensors(arguments.folder + "/weights." + std::to_string(ranks.rank()), views);
  ddp.reset();
  world.close();
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::set<std::string> options(argv + 4, argv + argc);
  phalanx::train({argv[1], std::stoll(argv[2]), std::stoll(argv[3]), options});
}
