// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/late_values.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace phalanx {

LateValues::LateValues(const at::Tensor& values) {
  const at::Tensor numbers = values.detach().to(at::kDouble);
  if (numbers.is_cpu()) {
    host_ = numbers;
    return;
  }
  const at::Device device = numbers.device();
  host_ = at::empty(numbers.sizes(), at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
  host_.copy_(numbers, /*non_blocking=*/true);
  copied_ = std::make_unique<c10::Event>(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

LateValues::LateValues(LateValues&&) noexcept = default;
LateValues& LateValues::operator=(LateValues&&) noexcept = default;
LateValues::~LateValues() = default;

std::vector<double> LateValues::read() const {
  if (copied_) copied_->synchronize();
  const auto* begin = host_.const_data_ptr<double>();
  return {begin, begin + host_.numel()};
}

}  // namespace phalanx
