// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "trainer/parallel/fsdp/device_streams.h"

namespace phalanx::fsdp {

/// Keeps the memory of tensors that were freed for the next of the same size: units are gathered
/// into the same two or three buffers again and again. On the host the kernel would clear the pages
/// anew each time. On a device a buffer that computing gives back is taken by gathers, on a stream
/// of their own, when what was computed with it is over: of two buffers of a size one is filled
/// while the other is used, and neither the host nor the gathers' order has to wait for that.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// Keeps so many buffers of the largest size, or smaller ones of as many bytes. `streams`: of the
  /// device that the memory is on; nullptr: the host.
  explicit BufferPool(std::size_t kept, std::shared_ptr<const DeviceStreams> streams = nullptr);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// A flat tensor of unknown content to compute with; on the host its memory comes back here.
  at::Tensor empty(int64_t size, const at::TensorOptions& options);

  /// Memory for a storage, which comes back here when it is released. On a device: for what is
  /// enqueued on the gathers' stream, which is the current one.
  c10::DataPtr take(c10::StorageImpl& storage, std::size_t bytes);

  /// Bytes that lie here unused.
  std::size_t idle_bytes() const;

 private:
  struct Loan;
  struct Idle {
    c10::DataPtr memory;
    std::optional<c10::Event> last_use;  ///< On a device, by computing.
    int64_t number = 0;  ///< Its place in the order in which buffers were given back.
  };

  static void give_back(void* loan);
  void keep(c10::DataPtr memory, std::size_t bytes);
  c10::DataPtr take_idle(std::size_t bytes);
  void drop_smallest();

  mutable std::mutex mutex_;  // a gradient may be freed on a thread of autograd's
  std::size_t kept_;
  std::shared_ptr<const DeviceStreams> streams_;
  std::multimap<std::size_t, Idle> idle_;    ///< By size; the one given back first comes first.
  std::map<std::size_t, std::size_t> made_;  ///< On a device: buffers of each size, lent and idle.
  int64_t given_back_ = 0;
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
