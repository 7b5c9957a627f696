// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/rank_tensors.h"

#include <ATen/core/grad_mode.h>

#include <stdexcept>
#include <utility>

#include "trainer/ranks/ranks.h"

namespace phalanx {

RankTensors::RankTensors(const Ranks& ranks)
    : group_{.index = ranks.rank(), .count = ranks.world_size(), .members = {ranks.rank()}} {}

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
  std::vector<ShardedTensorView> views;
  for (const Named& named : tensors_) {
    views.push_back(of_group(whole_tensor(named.name, named.tensor), group_));
  }
  return views;
}

void RankTensors::restore(std::string_view /*json*/) { have_begun_ = true; }

}  // namespace phalanx
