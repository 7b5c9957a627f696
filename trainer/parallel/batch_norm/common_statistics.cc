// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/batch_norm/common_statistics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "trainer/ranks/ranks.h"

namespace phalanx::batch_norm {

std::vector<int64_t> dimensions_of_values(const at::Tensor& input) {
  std::vector<int64_t> dimensions{0};
  for (int64_t i = 2; i < input.dim(); ++i) dimensions.push_back(i);
  return dimensions;
}

int64_t values_a_channel(const at::Tensor& input) {
  int64_t values = 1;
  for (const int64_t i : dimensions_of_values(input)) values *= input.size(i);
  return values;
}

CommonStatistics common_statistics(const at::Tensor& input, int64_t count, const Ranks& ranks) {
  const int64_t channels = input.size(1);
  // A rank's mean, sum of squared distances from it, and count.
  const at::Tensor own = at::zeros({2 * channels + 1}, input.options().dtype(at::kDouble));
  if (count > 0) {
    const auto [variance, mean] =
        at::var_mean(input, dimensions_of_values(input), /*correction=*/0);
    own.narrow(0, 0, channels).copy_(mean);
    own.narrow(0, channels, channels).copy_(variance.to(at::kDouble) * count);
    own.narrow(0, 2 * channels, 1).fill_(count);
  }
  at::Tensor all = at::empty({ranks.world_size() * own.numel()}, own.options());
  ranks.all_gather(all, own);
  all = all.view({ranks.world_size(), own.numel()});
  const at::Tensor means = all.narrow(1, 0, channels);
  const at::Tensor squares = all.narrow(1, channels, channels);
  const at::Tensor counts = all.narrow(1, 2 * channels, 1);

  CommonStatistics common{.count = counts.sum(0)};
  // Where there are fewer than two values in all, this rank has none or one: the others need not
  // wait for their device to answer.
  if (count <= 1) {
    const auto total = static_cast<int64_t>(common.count.item<double>());
    if (total == 1) {
      throw std::runtime_error(
          fmt::format("Expected more than 1 value per channel when training, got one on all {} "
                      "ranks together; input size here [{}]",
                      ranks.world_size(), fmt::join(input.sizes(), ", ")));
    }
    common.has_values = total > 0;
  }
  const at::Tensor divisor = common.count.clamp_min(1);
  common.mean = (means * counts).sum(0) / divisor;
  const at::Tensor square = (squares + counts * (means - common.mean).square()).sum(0);
  // Without any value the statistics say nothing, and the input stays as it is.
  common.variance = common.has_values ? square / divisor : at::ones_like(square);
  common.unbiased = square / (common.count - 1);
  return common;
}

}  // namespace phalanx::batch_norm
