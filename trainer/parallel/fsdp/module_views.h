// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/parallel/fsdp/flat_layout.h"
#include "trainer/parallel/fsdp/window.h"

namespace phalanx::fsdp {

/// The place of tensor `i`, of this shape, in a flat buffer: a view.
at::Tensor place_in(const at::Tensor& flat, const FlatLayout& layout, std::size_t i,
                    at::IntArrayRef shape);

/// What a module sees of a flat parameter: its own tensors stay the same objects, and each shows
/// its place in one flat buffer, so that views which autograd saved see the values again when the
/// buffer is filled anew. While that has no memory, reading one throws c10::Error that names it.
class ModuleViews {
 public:
  /// The parameters and their layout outlive it.
  ModuleViews(const std::vector<NamedParameter>& parameters, const FlatLayout& layout);
  ModuleViews(const ModuleViews&) = delete;
  ModuleViews& operator=(const ModuleViews&) = delete;
  /// What autograd or an author still holds of the parameters must not see memory that is gone.
  ~ModuleViews();

  /// The buffer comes and goes: windows show it from now on. Without them it is always there.
  void add_windows(const at::TensorOptions& options);
  /// The parameters are views of `flat`, which has memory.
  void show(const at::Tensor& flat) const;
  /// The parameters are windows on `flat`, or views where there are none.
  void show_buffer(const at::Tensor& flat) const;
  /// `flat` has memory, until `close`.
  void open(const at::Tensor& flat);
  void close();

 private:
  const std::vector<NamedParameter>& parameters_;
  const FlatLayout& layout_;
  std::vector<Window> windows_;  ///< One a parameter; none where the buffer is never given up.
  bool are_open_ = false;
};

}  // namespace phalanx::fsdp
