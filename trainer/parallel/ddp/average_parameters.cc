// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/average_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <map>

#include "trainer/ranks/ranks.h"

namespace phalanx {

void average_parameters(const std::vector<NamedParameter>& parameters, const Ranks& ranks) {
  const at::NoGradGuard no_grad;
  // One type at a time: Python raises all to the widest on the way.
  std::map<at::ScalarType, std::vector<at::Tensor>> of_types;
  for (const NamedParameter& parameter : parameters) {
    of_types[parameter.tensor.scalar_type()].push_back(parameter.tensor.detach());
  }
  for (const auto& [type, tensors] : of_types) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
    const at::Tensor together = at::cat(flat).div_(ranks.world_size());
    ranks.all_reduce(together);
    int64_t begin = 0;
    for (const at::Tensor& tensor : tensors) {
      tensor.copy_(together.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  }
}

}  // namespace phalanx
