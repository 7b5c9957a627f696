// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace phalanx {

/// Locks pages of host memory for GPUs, which then copy from and to them by themselves.
class HostPins {
 public:
  virtual ~HostPins() = default;

  /// `memory` begins a page, and `bytes` are whole pages. Throws LibTorch's error.
  virtual void pin(void* memory, size_t bytes) const = 0;
  /// What `pin` was given, once the device has done what it has begun. An error has nobody to tell:
  /// the process is ending.
  virtual void unpin(void* memory) const noexcept = 0;
};

/// CUDA's.
std::shared_ptr<const HostPins> cuda_pins();

/// A contiguous tensor in pinned host memory, uninitialised, which takes no more than its size
/// in whole pages: LibTorch's own (at::empty with pinned_memory) rounds up to a power of two, and
/// keeps what is given back. Giving it back waits for the device. Throws std::bad_alloc.
at::Tensor pinned_empty(at::IntArrayRef sizes, at::ScalarType dtype,
                        const std::shared_ptr<const HostPins>& pins = cuda_pins());

/// Pinned memory for tensors of the same sizes again and again: pinning takes longer than copying.
/// It keeps what is given back for the next one of that size, and waits for no copy: none may be
/// under way then. Thread-safe; tensors may outlive it.
class PinnedPool {
 public:
  /// Makes a tensor of so many bytes, for instance by pinned_empty.
  using Make = std::function<at::Tensor(int64_t bytes)>;

  explicit PinnedPool(Make make);

  at::Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype);

 private:
  class Blocks;

  std::shared_ptr<Blocks> blocks_;
};

}  // namespace phalanx
