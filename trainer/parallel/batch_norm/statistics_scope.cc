// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/batch_norm/statistics_scope.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/batch_norm_native.h>
#include <ATen/ops/instance_norm_native.h>
#include <torch/library.h>

#include <utility>

#include "trainer/api/uncounted_pass.h"
#include "trainer/parallel/batch_norm/sync_batch_norm.h"

namespace phalanx::batch_norm {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

thread_local std::optional<Ranks> scope_ranks;

at::Tensor tensor_of(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

// What the dispatcher calls for at::batch_norm. Outside of a scope it is LibTorch's own function.
at::Tensor batch_norm(const at::Tensor& input, const OptionalTensor& weight,
                      const OptionalTensor& bias, const OptionalTensor& running_mean,
                      const OptionalTensor& running_var, bool training, double momentum, double eps,
                      bool cudnn_enabled) {
  if (!training || !scope_ranks || scope_ranks->is_single_rank()) {
    return at::native::batch_norm(input, weight, bias, running_mean, running_var, training,
                                  momentum, eps, cudnn_enabled);
  }
  return sync_batch_norm(input,
                         {.weight = tensor_of(weight),
                          .bias = tensor_of(bias),
                          .running_mean = tensor_of(running_mean),
                          .running_var = tensor_of(running_var),
                          .momentum = momentum,
                          .eps = eps},
                         *scope_ranks, !is_uncounted_pass());
}

// LibTorch computes it by at::batch_norm of a tensor in which each sample has channels of its own.
at::Tensor instance_norm(const at::Tensor& input, const OptionalTensor& weight,
                         const OptionalTensor& bias, const OptionalTensor& running_mean,
                         const OptionalTensor& running_var, bool use_input_stats, double momentum,
                         double eps, bool cudnn_enabled) {
  const StatisticsScope own(std::nullopt);
  return at::native::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                                   momentum, eps, cudnn_enabled);
}

// Both are composites of other operators, without a kernel for autograd's keys. Those who never
// open a scope keep it so.
void take_over_once() {
  static const torch::Library library = [] {
    torch::Library kernels(torch::Library::IMPL, "aten", std::nullopt, __FILE__, __LINE__);
    for (const auto key : {c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutogradCUDA,
                           c10::DispatchKey::AutogradPrivateUse1}) {
      kernels.impl("batch_norm", torch::dispatch(key, TORCH_FN(batch_norm)));
      kernels.impl("instance_norm", torch::dispatch(key, TORCH_FN(instance_norm)));
    }
    return kernels;
  }();
}

}  // namespace

StatisticsScope::StatisticsScope(std::optional<Ranks> ranks)
    : before_(std::exchange(scope_ranks, std::move(ranks))) {
  if (scope_ranks) prepare();
}

StatisticsScope::~StatisticsScope() { scope_ranks = std::move(before_); }

void StatisticsScope::prepare() { take_over_once(); }

const std::optional<Ranks>& StatisticsScope::current() { return scope_ranks; }

}  // namespace phalanx::batch_norm
