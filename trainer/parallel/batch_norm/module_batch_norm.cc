// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/batch_norm/module_batch_norm.h"

#include <torch/nn/modules/batchnorm.h>

#include <utility>

#include "trainer/api/modules.h"
#include "trainer/parallel/batch_norm/batch_norm_1d.h"
#include "trainer/parallel/batch_norm/statistics_scope.h"

namespace phalanx::batch_norm {
namespace {

bool normalizes_batches(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&module) != nullptr ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&module) != nullptr ||
         dynamic_cast<const BatchNorm1dImpl*>(&module) != nullptr;
}

void add_buffers(const torch::nn::Module& module, std::vector<at::Tensor>& buffers) {
  if (!normalizes_batches(module)) return;
  for (at::Tensor& buffer : modules::buffers(module)) buffers.push_back(std::move(buffer));
}

}  // namespace

ModuleBatchNorm::ModuleBatchNorm(torch::nn::Module& module, const Ranks& ranks)
    : module_(module), ranks_(ranks.is_single_rank() ? ranks : ranks.separate("batch statistics")) {
  if (!ranks_.is_single_rank()) StatisticsScope::prepare();
}

std::optional<Ranks> ModuleBatchNorm::ranks() const {
  return modules::is_training(module_) ? std::make_optional(ranks_) : std::nullopt;
}

std::vector<at::Tensor> ModuleBatchNorm::buffers() const {
  std::vector<at::Tensor> buffers;
  add_buffers(module_, buffers);
  for (const auto& [name, module] : modules::descendants(module_)) add_buffers(*module, buffers);
  return buffers;
}

}  // namespace phalanx::batch_norm
