// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/premultiplied_sum.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "trainer/ranks/collectives/start_operation.h"

namespace phalanx {

Pending start_premultiplied_sum(const Ranks& ranks, const at::Tensor& tensor, double factor) {
  require_open(ranks, "all-reduce");
  if (ranks.is_single_rank()) {
    tensor.mul_(factor);
    return {};
  }
  const std::string backend = backend_name(ranks, tensor.device().type());
  if (backend != "nccl") {
    throw std::invalid_argument(fmt::format(
        "all-reduce: {} has no premultiplied sum; multiply the tensor, and add up", backend));
  }
  return start_operation(
      ranks, fmt::format("all-reduce (premultiplied sum of {} elements)", tensor.numel()),
      [&](c10d::ProcessGroup& group) {
        std::vector<at::Tensor> tensors{tensor};
        c10d::AllreduceOptions options;
        options.reduceOp = c10d::makeNCCLPreMulSum(factor);
        return group.allreduce(tensors, options);
      });
}

}  // namespace phalanx
