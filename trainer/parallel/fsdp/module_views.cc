// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/module_views.h"

#include <fmt/format.h>

#include <utility>

namespace phalanx::fsdp {

at::Tensor place_in(const at::Tensor& flat, const FlatLayout& layout, std::size_t i,
                    at::IntArrayRef shape) {
  const Range place = layout.place(i);
  return flat.narrow(0, place.begin, place.size()).view(shape);
}

ModuleViews::ModuleViews(const std::vector<NamedParameter>& parameters, const FlatLayout& layout)
    : parameters_(parameters), layout_(layout) {}

ModuleViews::~ModuleViews() { close(); }

void ModuleViews::add_windows(const at::TensorOptions& options) {
  for (const NamedParameter& parameter : parameters_) {
    windows_.emplace_back(
        parameter.tensor.sizes(), options,
        fmt::format("the parameter '{}' of a sharded model has no values now: it has them while "
                    "its unit runs (call the unit itself, unit(x), not its forward), and while "
                    "summon_full_params looks at them",
                    parameter.name));
  }
}

// set_data keeps the tensor that the module holds, its place in autograd and its version counter:
// filling the buffer anew is no change of a value that autograd has saved.
void ModuleViews::show(const at::Tensor& flat) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    parameter.set_data(place_in(flat, layout_, i, parameter.sizes()));
  }
}

void ModuleViews::show_buffer(const at::Tensor& flat) const {
  if (windows_.empty()) return show(flat);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.set_data(windows_[i].tensor());
  }
}

void ModuleViews::open(const at::Tensor& flat) {
  if (windows_.empty() || std::exchange(are_open_, true)) return;
  auto* const memory = static_cast<char*>(flat.mutable_data_ptr());
  const auto element = static_cast<int64_t>(flat.element_size());
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    windows_[i].open(memory + layout_.place(i).begin * element);
  }
}

void ModuleViews::close() {
  if (!std::exchange(are_open_, false)) return;
  for (const Window& window : windows_) window.close();
}

}  // namespace phalanx::fsdp
