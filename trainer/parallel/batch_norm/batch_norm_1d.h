// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/batchnorm.h>

namespace phalanx {

/// torch::nn::BatchNorm1d for models that normalize over the batches of all ranks (sync_batchnorm,
/// batch_norm::StatisticsScope): a rank may train with a single value a channel, `[1, channels]`,
/// where all ranks together have two, as in torch.nn.SyncBatchNorm. LibTorch's own refuses that on
/// the rank that has it, before the ranks exchange anything. In all else, and without such ranks,
/// it is LibTorch's: options, names and values.
class BatchNorm1dImpl : public torch::nn::BatchNormImplBase<1, BatchNorm1dImpl> {
 public:
  using torch::nn::BatchNormImplBase<1, BatchNorm1dImpl>::BatchNormImplBase;

  /// `input`: [samples, channels] or [samples, channels, places]; the result has its shape. Throws
  /// c10::Error for another shape, std::runtime_error where all ranks have one value together.
  at::Tensor forward(const at::Tensor& input);

 protected:
  void _check_input_dim(const at::Tensor& input) override;
};

TORCH_MODULE(BatchNorm1d);

}  // namespace phalanx
