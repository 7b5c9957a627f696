// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/allocators.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>
#include <utility>

#include "tests/test_device/kernel_scope.h"
#include "tests/test_device/memory.h"
#include "tests/test_device/races.h"
#include "tests/test_device/streams.h"
#include "tests/test_device/timeline.h"

namespace phalanx::test_device {
namespace {

constexpr int kNoDevice = -1;
thread_local int kernel_device = kNoDevice;

c10::DataPtr nothing(c10::Device shown) { return {nullptr, shown}; }

void free_device_memory(void* memory) {
  note_free(memory);
  free_memory(memory);
}

c10::DataPtr device_memory(int device, std::size_t bytes, c10::Device shown) {
  if (bytes == 0) return nothing(shown);
  void* const memory = allocate(device, current_number(device), bytes);
  return {memory, memory, &free_device_memory, shown};
}

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const int index = current_device();
    c10::DataPtr memory = device_memory(index, bytes, device(index));
    if (bytes > 0) poison(memory.get(), bytes, index);
    return memory;
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override {
    if (memory.get() != nullptr) record_stream(memory.get(), number_of(stream));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const MemoryCounts counts = memory_counts(device);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = static_cast<int64_t>(counts.live_bytes);
    stats.allocated_bytes[0].peak = static_cast<int64_t>(counts.peak_bytes);
    return stats;
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return {kDeviceBytes - memory_counts(device).live_bytes, kDeviceBytes};
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex device) override { reset_peak(device); }

 private:
  // New memory holds NaN: who reads it before it was written computes NaN.
  static void poison(void* memory, std::size_t bytes, int device) {
    finish_late_work(clock_of(current_number(device)));
    std::memset(memory, 0xff, bytes);
  }
};

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return nothing(at::kCPU);
    void* const memory = test_device::allocate(kPinned, 0, bytes);
    return {memory, memory, &free_memory, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

// In front of the CPU's allocator.
class KernelAllocator final : public c10::Allocator {
 public:
  explicit KernelAllocator(c10::Allocator* plain) : plain_(plain) {
    release_plain = plain->raw_deleter();
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    if (KernelScope::is_active()) return device_memory(KernelScope::device(), bytes, at::kCPU);
    return plain_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return release_plain ? &release : nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

 private:
  static void release(void* memory) {
    is_on_device(memory) ? free_device_memory(memory) : release_plain(memory);
  }

  static inline c10::DeleterFnPtr release_plain = nullptr;
  c10::Allocator* plain_;
};

}  // namespace

KernelScope::KernelScope(int device) : outer_(std::exchange(kernel_device, device)) {}
KernelScope::~KernelScope() { kernel_device = outer_; }
bool KernelScope::is_active() { return kernel_device != kNoDevice; }
int KernelScope::device() { return kernel_device; }

c10::Allocator* device_allocator() {
  static DeviceAllocator allocator;
  return &allocator;
}

c10::Allocator* pinned_allocator() {
  static PinnedAllocator allocator;
  return &allocator;
}

void install_allocators() {
  c10::SetAllocator(kType, device_allocator());
  static KernelAllocator in_front(c10::GetCPUAllocator());
  c10::SetCPUAllocator(&in_front, /*priority=*/1);
}

}  // namespace phalanx::test_device
