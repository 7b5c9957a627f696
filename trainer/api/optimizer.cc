// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/optimizer.h"

#include <utility>

namespace phalanx {
namespace {

ShardedTensorView view_of_part(std::string name, const at::Tensor& part, const ShardRange& shard) {
  return {.name = std::move(name),
          .shape = shard.shape,
          .dtype = part.scalar_type(),
          .box = shard.box,
          .begin = shard.begin,
          .end = shard.end,
          .local = part.detach(),
          .replicas = shard.replicas};
}

}  // namespace

ShardedTensorView view_of(const NamedParameter& parameter) {
  if (!parameter.shard) return whole_tensor(parameter.name, parameter.tensor);
  return view_of_part(parameter.name, parameter.tensor, *parameter.shard);
}

void Optimizer::step_unless(const at::Tensor& skip, double lr) {
  if (skip.item().toDouble() == 0) step(lr);
}

void Optimizer::step_by(double factor, const at::Tensor& skip) {
  const double lr = base_lr() * factor;
  if (skip.defined()) {
    step_unless(skip, lr);
  } else {
    step(lr);
  }
}

ShardedTensorView state_view(const NamedParameter& parameter, std::string_view state,
                             const at::Tensor& values) {
  std::string name = parameter.name + "." + std::string(state);
  if (!parameter.shard || values.dim() == 0) return whole_tensor(std::move(name), values);
  return view_of_part(std::move(name), values, *parameter.shard);
}

}  // namespace phalanx
