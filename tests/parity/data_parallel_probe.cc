// SPDX-License-Identifier: Apache-2.0
// Trains a small module in DataParallel with a loop of its own, for data_parallel_parity.py: two
// replicas in threads, in double precision.
//
//   data_parallel_probe FILE STEPS SAMPLES
//
// Writes weights, buffers and the last step's gradients to FILE.

#include <ATen/core/grad_mode.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/parallel/replicas/data_parallel_module.h"

namespace phalanx {
namespace {

constexpr double kLearningRate = 0.05;

// Values that Python computes alike.
at::Tensor wave(at::IntArrayRef shape, double phase) {
  return torch::sin(torch::arange(c10::multiply_integers(shape), torch::kDouble) * 0.37 + phase)
      .view(shape);
}

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() {
    NetImpl::reset();
    const at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) parameter.copy_(wave(parameter.sizes(), phase++) * 0.3);
  }

  void reset() override {
    first = register_module("first", torch::nn::Linear(10, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    last = register_module("last", torch::nn::Linear(16, 4));
    to(torch::kDouble);
  }

  at::Tensor forward(at::Tensor input) {
    return last->forward(torch::tanh(norm->forward(first->forward(input))));
  }

  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

void train(const std::string& file, int64_t steps, int64_t samples) {
  const auto net = std::make_shared<NetImpl>();
  DataParallel<NetImpl> parallel(net, {at::kCPU, at::kCPU});
  std::vector<ShardedTensorView> views;
  for (int64_t step = 0; step < steps; ++step) {
    const auto phase = static_cast<double>(step) * 7;
    const at::Tensor output = parallel(wave({samples, 10}, phase));
    (output - wave({samples, 4}, phase + 1)).square().mean().backward();
    const at::NoGradGuard no_grad;
    for (auto& item : net->named_parameters()) {
      at::Tensor& parameter = item.value();
      parameter.add_(parameter.grad(), -kLearningRate);
      if (step + 1 == steps) {
        views.push_back(whole_tensor("gradient." + item.key(), parameter.grad().clone()));
      }
      parameter.mutable_grad().reset();
    }
  }
  for (const auto& item : net->named_parameters()) {
    views.push_back(whole_tensor(item.key(), item.value()));
  }
  for (const auto& item : net->named_buffers()) {
    views.push_back(whole_tensor(item.key(), item.value()));
  }
  write_safetensors(file, views);
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  phalanx::train(argv[1], std::stoll(argv[2]), std::stoll(argv[3]));
}
