// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/sharded_tensor_view.h"

#include <stdexcept>

namespace phalanx {
namespace {

bool shares_elements(const at::Tensor& tensor) {
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.stride(i) == 0 && tensor.size(i) > 1) return true;
  }
  return false;
}

}  // namespace

ShardedTensorView whole_tensor(std::string name, const at::Tensor& tensor) {
  if (shares_elements(tensor)) {
    throw std::logic_error("elements of tensor '" + name +
                           "' share memory, so that it cannot be viewed: it needs its own");
  }
  return {.name = std::move(name),
          .shape = tensor.sizes().vec(),
          .dtype = tensor.scalar_type(),
          .begin = 0,
          .end = tensor.numel(),
          .local = tensor.detach()};
}

}  // namespace phalanx
