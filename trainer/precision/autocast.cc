// SPDX-License-Identifier: Apache-2.0
#include "trainer/precision/autocast.h"

#include <ATen/autocast_mode.h>

namespace phalanx {

Autocast::Autocast(std::optional<AutocastTo> to) : to_(to) {
  if (!to_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(to_->device);
  previous_dtype_ = at::autocast::get_autocast_dtype(to_->device);
  at::autocast::set_autocast_enabled(to_->device, true);
  at::autocast::set_autocast_dtype(to_->device, to_->dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!to_) return;
  // The casts that are kept belong to the outermost scope (torch/amp/autocast_mode.py).
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(to_->device, was_enabled_);
  at::autocast::set_autocast_dtype(to_->device, previous_dtype_);
}

std::optional<AutocastTo> Autocast::current(c10::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return AutocastTo{.device = device, .dtype = at::autocast::get_autocast_dtype(device)};
}

}  // namespace phalanx
