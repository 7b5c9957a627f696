// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace phalanx {

/// A GPU and what drives it.
struct CudaDevice {
  std::string name;         ///< "NVIDIA H200".
  std::string pci_address;  ///< "0000:07:00.0".
  std::string uuid;         ///< 32 hexadecimal digits, of a part of a GPU (MIG) that part's.
  int64_t bytes = 0;        ///< Its memory.
  int cuda_version = 0;     ///< 13000 is 13.0: of the headers that this was compiled with.
  int nccl_version = 0;     ///< 22809 is 2.28.9.
};

/// All that is compiled against CUDA's and NCCL's headers, in LibTorch's general terms. It stands
/// behind a shared object of its own, for a program that loads CUDA starts 100 ms later and 350 MB
/// larger. Streams and events are not here: c10::Stream and c10::Event serve every device.
class CudaPart {
 public:
  virtual ~CudaPart() = default;

  /// Devices that this process may use, at least 1. Throws LibTorch's error without a driver, with
  /// one that is too old, or without a device.
  virtual int64_t device_count() const = 0;

  /// A device of those; throws c10::Error for another number.
  virtual CudaDevice describe(int64_t device) const = 0;

  /// Makes a device the one that this thread computes on.
  virtual void use_device(int64_t device) const = 0;

  /// Locks whole pages of host memory, so that every device copies from and to them by itself, and
  /// undoes that. Pinning throws c10::Error; its undoing has no error, since it comes at the end.
  virtual void pin(void* memory, std::size_t bytes) const = 0;
  virtual void unpin(void* memory) const noexcept = 0;

  /// NCCL between ranks that meet in `store`, each on its own device; connects at the first
  /// collective. Throws "no GPUs found" without any.
  virtual c10::intrusive_ptr<c10d::Backend> make_nccl_backend(
      c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t world_size,
      std::chrono::milliseconds timeout) const = 0;
};

/// The shared object's one symbol, which gives its CudaPart.
inline constexpr const char* kCudaPartSymbol = "phalanx_cuda_part";
using GetCudaPart = const CudaPart*();

}  // namespace phalanx
