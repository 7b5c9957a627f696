// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/bucket_mean.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

using c10::ivalue::Future;

c10::intrusive_ptr<Future> future_of(const at::Tensor& tensor) {
  std::vector<c10::Device> devices;
  if (!tensor.device().is_cpu()) devices.push_back(tensor.device());
  return c10::make_intrusive<Future>(c10::TensorType::get(), std::move(devices));
}

c10::intrusive_ptr<Future> start_bucket_mean(const at::Tensor& buffer, const Ranks& ranks) {
  if (ranks.is_single_rank()) {
    auto future = future_of(buffer);
    future->markCompleted(buffer);
    return future;
  }
  std::vector<at::Tensor> gradients{buffer.div_(ranks.world_size())};
  return process_group(ranks)->allreduce(gradients)->getFuture();
}

}  // namespace phalanx
