// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "trainer/memory/device_memory.h"

namespace phalanx {

/// Stands in for a GPU and its caching allocator while it lives, one at a time: a device whose
/// memory is what the test says. Tensors on it have no values.
class StandInDevice {
 public:
  static inline const at::Device kDevice{at::DeviceType::PrivateUse1, 0};

  explicit StandInDevice(const DeviceMemory& memory) : allocator_(memory) {
    c10::SetAllocator(kDevice.type(), &allocator_);
  }
  StandInDevice(const StandInDevice&) = delete;
  StandInDevice& operator=(const StandInDevice&) = delete;
  ~StandInDevice() { c10::SetAllocator(kDevice.type(), nullptr); }

  void set(const DeviceMemory& memory) { allocator_.memory = memory; }
  void fail() { allocator_.answers = false; }

  /// float32 [elements].
  static at::Tensor tensor(int64_t elements) {
    const auto bytes = static_cast<size_t>(elements) * sizeof(float);
    c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, kDevice));
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        c10::scalarTypeToTypeMeta(at::kFloat));
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous({elements});
    return tensor;
  }

 private:
  struct Allocator final : c10::DeviceAllocator {
    explicit Allocator(const DeviceMemory& given) : memory(given) {}

    bool initialized() override { return true; }
    c10::DataPtr allocate(size_t /*bytes*/) override { return {nullptr, kDevice}; }
    void copy_data(void* /*to*/, const void* /*from*/, size_t /*bytes*/) const override {}
    void emptyCache(c10::MempoolId_t /*pool*/) override {}
    void recordStream(const c10::DataPtr& /*data*/, c10::Stream /*stream*/) override {}
    void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {}
    void resetPeakStats(c10::DeviceIndex /*device*/) override {}
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex /*device*/) override {
      c10::CachingDeviceAllocator::DeviceStats stats;
      stats.reserved_bytes[0].current = memory.reserved;
      stats.allocated_bytes[0].current = memory.in_tensors;
      stats.allocated_bytes[0].peak = memory.most_in_tensors;
      return stats;
    }
    std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex /*device*/) override {
      TORCH_CHECK(answers, "the device does not answer");
      return {memory.free, memory.total};
    }

    DeviceMemory memory;
    bool answers = true;
  };

  Allocator allocator_;
};

}  // namespace phalanx
