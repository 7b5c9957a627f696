// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/uneven_all_to_all.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/ranks/collectives/start_operation.h"

namespace phalanx {

void uneven_all_to_all(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                       std::vector<int64_t> output_parts, std::vector<int64_t> input_parts) {
  start_operation(ranks, fmt::format("all-to-all (of {} elements)", input.numel()),
                  [&](c10d::ProcessGroup& group) {
                    at::Tensor to = output;
                    at::Tensor from = input;
                    return group.alltoall_base(to, from, output_parts, input_parts);
                  })
      .wait();
}

}  // namespace phalanx
