// SPDX-License-Identifier: Apache-2.0
// What PowerSGD makes of gradients on two ranks; tests/parity/ddp_parity.py compares it with
// Python's.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/parallel/ddp_options_of.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/parallel/ddp/ddp.h"

namespace phalanx {
namespace {

constexpr int64_t kWidth = 12;

struct Net : torch::nn::Module {
  Net() {
    at::manual_seed(7);
    for (const char* name : {"a", "b", "c"}) {
      layers.push_back(register_module(name, torch::nn::Linear(kWidth, kWidth)));
    }
    to(at::kDouble);
  }

  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) x = layer->forward(x).tanh();
    return x.square().sum();
  }

  std::vector<torch::nn::Linear> layers;
};

/// A net that gradients descend.
struct Trained {
  Trained(const std::string& yaml, const Ranks& its_ranks)
      : ranks(its_ranks), ddp(prepare_ddp(net, ranks, ddp_options_of(yaml))) {}

  /// Gradients of a step over all ranks, of samples that differ by rank and step.
  std::vector<at::Tensor> gradients(int64_t step) {
    const auto seed = static_cast<uint64_t>(100 * step + ranks.rank());
    const at::Tensor samples =
        at::randn({4 * kWidth, kWidth}, at::make_generator<at::CPUGeneratorImpl>(seed),
                  at::TensorOptions(at::kDouble));
    net.zero_grad();
    ddp->forward([&] { return net.forward(samples); }).backward();
    std::vector<at::Tensor> found;
    for (const at::Tensor& parameter : net.parameters()) found.push_back(parameter.grad().clone());
    return found;
  }

  void step(int64_t number) {
    const std::vector<at::Tensor> found = gradients(number);
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < found.size(); ++i) net.parameters()[i].sub_(found[i], 0.01);
  }

  std::vector<NamedStateful> states() const { return ddp->comm_hook()->kept_states(); }

  const Ranks& ranks;
  Net net;
  std::unique_ptr<DistributedDataParallel> ddp;
};

void require_equal(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected,
                   double tolerance, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double most = found[i].sub(expected[i]).abs().max().item().toDouble();
    require(most <= tolerance, fmt::format("{}, parameter {}: {} apart", what, i, most));
  }
}

std::string hook(const std::string& name, const std::string& more) {
  return fmt::format(
      "{{comm_hook: {{name: {}, start_powerSGD_iter: 2, {}}}, bucket_cap_mb: 0.002}}", name, more);
}

TEST(PowerSgd, IsTheMeanWithAsManyColumnsAsTheGradients) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    for (const char* const more : {"batch_tensors_with_same_shape: true",
                                   "use_error_feedback: false", "warm_start: false"}) {
      Trained plain("{}", ranks);
      Trained compressed(
          hook("powerSGD",
               fmt::format("matrix_approximation_rank: 99, min_compression_rate: 0, {}", more)),
          ranks);
      for (int64_t step = 0; step < 5; ++step) {
        require_equal(compressed.gradients(step), plain.gradients(step), 1e-9,
                      fmt::format("{}, step {}", more, step));
      }
    }
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(PowerSgd, KeepsWhatItLeavesOut) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    for (const char* const name : {"powerSGD", "batched_powerSGD"}) {
      Trained plain("{}", ranks);
      Trained compressed(hook(name, "matrix_approximation_rank: 1"), ranks);
      std::vector<at::Tensor> expected;
      std::vector<at::Tensor> found;
      for (int64_t step = 0; step < 3; ++step) {  // the last compresses
        expected = plain.gradients(step);
        found = compressed.gradients(step);
      }
      bool has_left_out = false;
      const std::vector<ShardedTensorView> errors = compressed.states().at(1).state->tensors();
      for (std::size_t i = 0; i < found.size(); ++i) {
        const at::Tensor error = errors[i].local.clone();
        ranks.all_reduce(error, Reduction::average);
        has_left_out |= error.abs().max().item().toDouble() > 1e-6;
        found[i].add_(error.view_as(found[i]));
      }
      require(has_left_out, fmt::format("{} leaves something out", name));
      require_equal(found, expected, 1e-12, name);
    }
  });
  EXPECT_EQ(outcome.message, "");
}

TEST(PowerSgd, GoesOnFromItsState) {
  const auto outcome = in_ranks(2, [](World& world) {
    const Ranks& ranks = world.ranks();
    for (const std::string& yaml :
         {hook("powerSGD", "matrix_approximation_rank: 2"), hook("powerSGD", "warm_start: false"),
          hook("batched_powerSGD", "matrix_approximation_rank: 3")}) {
      Trained whole(yaml, ranks);
      for (int64_t step = 0; step < 5; ++step) whole.step(step);
      Trained resumed(yaml, ranks);
      Trained lacking(yaml, ranks);
      Trained anew(yaml, ranks);
      resumed.ddp->follow_reduction_order(whole.ddp->reduction_order());
      lacking.ddp->follow_reduction_order(whole.ddp->reduction_order());
      anew.ddp->follow_reduction_order(whole.ddp->reduction_order());
      const auto from = whole.states();
      const auto into = resumed.states();
      for (std::size_t part = 0; part < from.size(); ++part) {
        require(into[part].name == from[part].name, "the same parts");
        const auto values = from[part].state->tensors();
        auto places = into[part].state->tensors();
        auto others = lacking.states().at(part).state->tensors();
        for (std::size_t i = 0; i < values.size(); ++i) {
          require(places[i].name == values[i].name && places[i].shape == values[i].shape,
                  "the same tensors before the first step");
          places[i].local.copy_(values[i].local);
          others[i].local.fill_(7);  // as a damaged checkpoint may
        }
        into[part].state->restore(from[part].state->json());
      }
      const c10::NoGradGuard no_grad;
      for (std::size_t i = 0; i < whole.net.parameters().size(); ++i) {
        resumed.net.parameters()[i].copy_(whole.net.parameters()[i]);
        lacking.net.parameters()[i].copy_(whole.net.parameters()[i]);
        anew.net.parameters()[i].copy_(whole.net.parameters()[i]);
      }
      const c10::AutoGradMode trains(true);
      for (int64_t step = 5; step < 8; ++step) {
        const auto expected = whole.gradients(step);
        require_equal(resumed.gradients(step), expected, 0, yaml);
        require_equal(lacking.gradients(step), anew.gradients(step), 0,
                      yaml + ", what does not count");
      }
    }
  });
  EXPECT_EQ(outcome.message, "");
}

}  // namespace
}  // namespace phalanx
