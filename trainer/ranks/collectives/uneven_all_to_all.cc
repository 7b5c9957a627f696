// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/uneven_all_to_all.h"

#include <fmt/format.h>

#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/communication_error.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

void uneven_all_to_all(const Ranks& ranks, const at::Tensor& output, const at::Tensor& input,
                       std::vector<int64_t> output_parts, std::vector<int64_t> input_parts) {
  const auto& group = process_group(ranks);
  at::Tensor to = output;
  at::Tensor from = input;
  ranks.group().activity->begin_operation();
  try {
    group->alltoall_base(to, from, output_parts, input_parts)->wait();
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("all-to-all (of {} elements) of {} ranks failed in {}: {}",
                                         input.numel(), ranks.world_size(), ranks.activity(),
                                         plain_gloo_text(error_text(error))));
  }
}

}  // namespace phalanx
