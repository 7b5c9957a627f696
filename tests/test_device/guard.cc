// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/guard.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <memory>

#include "tests/test_device/failure.h"
#include "tests/test_device/host_syncs.h"
#include "tests/test_device/memory.h"
#include "tests/test_device/streams.h"
#include "tests/test_device/timeline.h"

namespace phalanx::test_device {
namespace {

struct Event {
  Clock clock;
  std::chrono::steady_clock::time_point time;
};

// What the host knows comes before all that a stream gets from now on, and before its events.
Clock clock_with_host(uint32_t stream) {
  make_stream_wait(stream, clock_of_host());
  return clock_of(stream);
}

Clock clock_of_device(int device) {
  Clock clock;
  for (uint32_t i = 0; i < kStreamsPerDevice; ++i) {
    clock.join(clock_of(static_cast<uint32_t>(device) * kStreamsPerDevice + i));
  }
  return clock;
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Device getDevice() const override { return device(current_device()); }
  c10::Device exchangeDevice(c10::Device wanted) const override {
    return device(set_current_device(wanted.index()));
  }
  void setDevice(c10::Device wanted) const override { set_current_device(wanted.index()); }
  void uncheckedSetDevice(c10::Device wanted) const noexcept override {
    set_current_device(wanted.index());
  }

  c10::Stream getStream(c10::Device of) const override { return current_stream(index(of)); }
  c10::Stream getDefaultStream(c10::Device of) const override { return stream_of(index(of), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool high_priority) const override {
    return pool_stream(index(of), high_priority);
  }
  c10::Stream getNewStream(c10::Device of, int priority) const override {
    return pool_stream(index(of), priority < 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  bool queryStream(const c10::Stream& stream) const override {
    require_answer();
    return is_over(clock_of(number_of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    require_answer();
    synchronize(kStream, clock_of(number_of(stream)));
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    require_answer();
    synchronize(kDevice, clock_of_device(device));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex device,
              c10::EventFlag) const override {
    require_answer();
    TORCH_CHECK(device == -1 || device == stream.device_index(), "an event of another device");
    auto made = std::make_unique<Event>(
        Event{clock_with_host(number_of(stream)), std::chrono::steady_clock::now()});
    destroyEvent(*event, device);
    *event = made.release();  // LibTorch's c10::Event owns it, and ends it by destroyEvent
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    const std::unique_ptr<Event> owned(static_cast<Event*>(event));
  }
  void block(void* event, const c10::Stream& stream) const override {
    require_answer();
    if (event != nullptr) make_stream_wait(number_of(stream), clock_of_event(event));
  }
  bool queryEvent(void* event) const override {
    require_answer();
    return event == nullptr || is_over(clock_of_event(event));
  }
  void synchronizeEvent(void* event) const override {
    require_answer();
    if (event != nullptr) synchronize(kEvent, clock_of_event(event));
  }
  double elapsedTime(void* begin, void* end, c10::DeviceIndex) const override {
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(end)->time -
                                                     static_cast<Event*>(begin)->time)
        .count();
  }

  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    if (memory.get() != nullptr) record_stream(memory.get(), number_of(stream));
  }

 private:
  static int index(c10::Device of) { return of.has_index() ? of.index() : current_device(); }
  static const Clock& clock_of_event(void* event) { return static_cast<Event*>(event)->clock; }
};

}  // namespace

void install_guard() {
  static Guard guard;
  c10::impl::DeviceGuardImplRegistrar(kType, &guard);
}

}  // namespace phalanx::test_device
