// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace phalanx::fsdp {

/// A tensor that shows memory which comes and goes. While it is closed, whatever reads or writes
/// it, or a view of it, throws c10::Error, where LibTorch would follow a null pointer; shapes and
/// views can still be had.
class Window {
 public:
  /// Closed. `refusal`: what the error says.
  Window(at::IntArrayRef shape, const at::TensorOptions& options, const std::string& refusal);

  const at::Tensor& tensor() const { return tensor_; }
  /// Shows the caller's memory, of all elements in order on the tensor's device, until `close`.
  void open(void* memory) const;
  /// Without elements it stays open: there is nothing to read.
  void close() const;

 private:
  void show(void* memory, bool refuses) const;

  at::Tensor tensor_;
};

}  // namespace phalanx::fsdp
