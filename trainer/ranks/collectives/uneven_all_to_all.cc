// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/uneven_all_to_all.h"

#include <fmt/format.h>

#include <numeric>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "trainer/ranks/collectives/start_operation.h"

namespace phalanx {
namespace {

void require_parts(const Ranks& ranks, const char* which, const at::Tensor& tensor,
                   const std::vector<int64_t>& parts) {
  const int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  const int64_t sum = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  if (static_cast<int64_t>(parts.size()) == ranks.world_size() && sum == rows) return;
  throw std::invalid_argument(
      fmt::format("all-to-all: the {} has {} rows, and its {} parts for {} ranks have {}", which,
                  rows, parts.size(), ranks.world_size(), sum));
}

}  // namespace

Pending start_uneven_all_to_all(const Ranks& ranks, const at::Tensor& output,
                                const at::Tensor& input, std::vector<int64_t> output_parts,
                                std::vector<int64_t> input_parts) {
  require_open(ranks, "all-to-all");
  require_parts(ranks, "output", output, output_parts);
  require_parts(ranks, "input", input, input_parts);
  if (ranks.is_single_rank()) {
    output.copy_(input);
    return {};
  }
  return start_operation(ranks, fmt::format("all-to-all (of {} elements)", input.numel()),
                         [&](c10d::ProcessGroup& group) {
                           at::Tensor to = output;
                           at::Tensor from = input;
                           return group.alltoall_base(to, from, output_parts, input_parts);
                         });
}

void uneven_all_to_all(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                       std::vector<int64_t> output_parts, std::vector<int64_t> input_parts) {
  start_uneven_all_to_all(ranks, output, input, std::move(output_parts), std::move(input_parts))
      .wait();
}

}  // namespace phalanx
