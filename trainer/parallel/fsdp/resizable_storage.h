// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace phalanx::fsdp {

/// Keeps the memory of host tensors that were freed for the next of the same size: units are
/// gathered into the same two or three buffers again and again, whose pages the kernel would clear
/// anew each time. On a GPU LibTorch's allocator does so itself.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// Keeps so many buffers of the largest size, or smaller ones of as many bytes.
  explicit BufferPool(std::size_t kept) : kept_(kept) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A flat tensor of unknown content, whose memory comes back here.
  at::Tensor empty(int64_t size, const at::TensorOptions& options);

  /// Memory for a storage; on the host it comes back here when it is released.
  c10::DataPtr take(c10::StorageImpl& storage, std::size_t bytes);

  /// Bytes that lie here unused.
  std::size_t idle_bytes() const;

 private:
  struct Loan;
  static void give_back(void* loan);
  void keep(c10::DataPtr memory, std::size_t bytes);

  mutable std::mutex mutex_;  // a gradient may be freed on a thread of autograd's
  std::size_t kept_;
  std::multimap<std::size_t, c10::DataPtr> idle_;
  std::size_t idle_bytes_ = 0;
  std::size_t largest_ = 0;
};

/// A flat tensor whose memory comes and goes while the tensor, and all views of it, stay. For the
/// engine alone: a model sees its parameters through windows.
class ResizableStorage {
 public:
  /// Without memory at first.
  ResizableStorage(int64_t size, const at::TensorOptions& options,
                   std::shared_ptr<BufferPool> pool);

  /// The tensor; reading it while `is_allocated` is false throws, or ends the process.
  const at::Tensor& tensor() const { return tensor_; }
  bool is_allocated() const;
  /// Gives it memory of unknown content.
  void allocate();
  /// Takes the memory away; of views too.
  void free();

 private:
  at::Tensor tensor_;
  std::shared_ptr<BufferPool> pool_;
};

}  // namespace phalanx::fsdp
