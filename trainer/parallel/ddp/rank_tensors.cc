// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/rank_tensors.h"

#include <ATen/core/grad_mode.h>

#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/ranks/ranks.h"

namespace phalanx {

RankTensors::Group RankTensors::each(const Ranks& ranks) {
  return {.index = ranks.rank(), .count = ranks.world_size(), .size = 1};
}

void RankTensors::add(std::string name, at::Tensor tensor) {
  if (!tensor.is_contiguous()) throw std::logic_error("a rank's own tensor must be contiguous");
  tensors_.push_back({.name = std::move(name), .tensor = std::move(tensor)});
}

void RankTensors::begin() {
  if (std::exchange(have_begun_, true)) return;
  const at::NoGradGuard no_grad;
  for (const Named& named : tensors_) named.tensor.zero_();
}

std::vector<ShardedTensorView> RankTensors::tensors() {
  std::vector<int64_t> members(static_cast<std::size_t>(group_.size));
  std::iota(members.begin(), members.end(), group_.index * group_.size);
  std::vector<ShardedTensorView> views;
  for (const Named& named : tensors_) {
    std::vector<int64_t> shape = named.tensor.sizes().vec();
    shape.insert(shape.begin(), group_.count);
    const int64_t elements = named.tensor.numel();
    views.push_back({.name = named.name,
                     .shape = std::move(shape),
                     .dtype = named.tensor.scalar_type(),
                     .begin = group_.index * elements,
                     .end = (group_.index + 1) * elements,
                     .local = named.tensor.detach().view({-1}),
                     .replicas = members});
  }
  return views;
}

void RankTensors::restore(std::string_view /*json*/) { have_begun_ = true; }

}  // namespace phalanx
