// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/uneven_passes.h"

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "trainer/parallel/ddp/ordered_reducer.h"
#include "trainer/ranks/collectives/process_group.h"

namespace phalanx {

UnevenPasses::UnevenPasses(OrderedReducer& reducer, Ranks ranks, at::Device device,
                           const UnevenInputs& inputs)
    : reducer_(reducer), ranks_(std::move(ranks)), device_(device), inputs_(inputs) {}

UnevenPasses::~UnevenPasses() { reducer_.forget_participants(); }

at::Tensor UnevenPasses::number(int64_t value) const {
  return at::full({1}, value, at::TensorOptions(at::kInt).device(device_));
}

int64_t UnevenPasses::sum(int64_t value) const {
  const at::Tensor summed = number(value);
  ranks_.all_reduce(summed);
  return summed.item().toLong();
}

void UnevenPasses::has_inputs() {
  // Waited for by the reducer, where it divides by the number of these ranks.
  std::vector<at::Tensor> one{number(1)};
  reducer_.set_forward_pass_work_handle(process_group(ranks_)->allreduce(one),
                                        inputs_.divide_by_initial_world_size);
  if (inputs_.throw_on_early_termination && sum(0) != 0) {
    throw InputsRanOut("another rank has no inputs left: all ranks end here");
  }
}

int64_t UnevenPasses::ranks_with_inputs() {
  const int64_t with_inputs = sum(0);
  if (with_inputs != 0 && inputs_.throw_on_early_termination) {
    sum(1);
    throw InputsRanOut(
        fmt::format("rank {} has no inputs left: all ranks end here", ranks_.rank()));
  }
  return with_inputs;
}

int64_t UnevenPasses::common_rank(bool is_candidate) const {
  const at::Tensor rank = number(is_candidate ? ranks_.rank() : -1);
  ranks_.all_reduce(rank, Reduction::maximum);
  return rank.item().toLong();
}

bool UnevenPasses::synchronizes(bool does) const { return sum(does ? 1 : 0) != 0; }

}  // namespace phalanx
