// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx {
class Ranks;
}

namespace phalanx::batch_norm {

/// What all ranks' samples have in common, alike on all ranks to the bit; float64.
struct CommonStatistics {
  at::Tensor mean;         ///< [channels]
  at::Tensor variance;     ///< [channels], biased.
  at::Tensor unbiased;     ///< [channels], the variance by one value less.
  at::Tensor count;        ///< [1]: values a channel.
  bool has_values = true;  ///< False: no rank has a sample.
};

/// The dimensions that a channel's values lie in: all but the second.
std::vector<int64_t> dimensions_of_values(const at::Tensor& input);

/// How many values a channel has on this rank.
int64_t values_a_channel(const at::Tensor& input);

/// The statistics of all ranks' `input`, [samples, channels, ...] in float32 or float64, by Chan's
/// way to join means and sums of squares; one all-gather. `count`: how many of this rank's values
/// are in them, none or all. Throws std::runtime_error if the ranks have one value together.
CommonStatistics common_statistics(const at::Tensor& input, int64_t count, const Ranks& ranks);

}  // namespace phalanx::batch_norm
