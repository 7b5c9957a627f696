// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/batch_transport.h"

#include <ATen/ops/empty_like.h>

#include <utility>
#include <vector>

#include "trainer/api/left_on_host.h"

namespace phalanx {
namespace {

bool is_left_on_host(const Batch& batch) {
  return dynamic_cast<const LeftOnHost*>(&batch) != nullptr;
}

}  // namespace

BatchTransport::BatchTransport(const StepParts& parts) : parts_(parts) {
  if (!parts_.device().is_cpu()) copies_.emplace(parts_.device());
}

void BatchTransport::bring(Batch& batch) const {
  if (!is_left_on_host(batch)) move_to(batch, parts_.device());
  cast(batch);
}

// The memory is that of the stream that computes with it: an allocator gives it to others in that
// stream's order. So the copies are joined before a batch is used or freed.
void BatchTransport::start_copies(Batch& batch) const {
  if (!copies_ || is_left_on_host(batch)) return;
  const c10::Device device = parts_.device();
  std::vector<std::pair<at::Tensor*, at::Tensor>> places;
  for (at::Tensor* const tensor : batch.tensors()) {
    if (!tensor->defined() || tensor->device() == device) continue;
    places.emplace_back(tensor, at::empty_like(*tensor, tensor->options().device(device)));
  }
  copies_->run_after_computing([&] {
    for (auto& [tensor, place] : places) {
      place.copy_(*tensor, /*non_blocking=*/true);
      *tensor = std::move(place);
    }
  });
}

void BatchTransport::join_copies() const {
  if (copies_) copies_->join();
}

void BatchTransport::cast(Batch& batch) const {
  if (const auto dtype = parts_.input_dtype()) cast_inputs(batch, *dtype);
}

}  // namespace phalanx
