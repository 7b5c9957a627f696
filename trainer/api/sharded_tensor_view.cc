// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/sharded_tensor_view.h"

#include <stdexcept>

namespace phalanx {

ShardedTensorView whole_tensor(std::string name, const at::Tensor& tensor) {
  if (!tensor.is_contiguous()) {
    throw std::logic_error("tensor '" + name + "' is not contiguous and cannot be viewed flat");
  }
  return {.name = std::move(name),
          .shape = tensor.sizes().vec(),
          .dtype = tensor.scalar_type(),
          .begin = 0,
          .end = tensor.numel(),
          .local = tensor.detach()};
}

}  // namespace phalanx
