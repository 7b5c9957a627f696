// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {
class Ranks;
}

namespace phalanx::batch_norm {

/// What at::batch_norm gets beside its input; tensors are [channels], or undefined.
struct Normalization {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;  ///< Moved towards the mean.
  at::Tensor running_var;   ///< Moved towards the unbiased variance.
  double momentum = 0;
  double eps = 0;
};

/// Normalizes `input`, [samples, channels, ...], by the mean and variance that each channel has
/// over the samples of all ranks, which may be as many as each likes, also none. All ranks call it,
/// and the backward pass of its result. Its gradients are those of the sum of all ranks' losses:
/// the input's whole, those of weight and bias this rank's part (torch.nn.SyncBatchNorm).
/// `counts`: false leaves this rank's samples out of the statistics; their own losses must not
/// count either. Throws std::runtime_error where one value a channel is all that the ranks have,
/// c10::Error for a weight or statistics of another size, and in a backward pass that is to be
/// differentiated again.
at::Tensor sync_batch_norm(const at::Tensor& input, const Normalization& normalization,
                           const Ranks& ranks, bool counts);

}  // namespace phalanx::batch_norm
