// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/streams.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <utility>

namespace phalanx::test_device {
namespace {

thread_local int current = 0;
thread_local std::array<int64_t, kDevices> places{};

}  // namespace

int current_device() { return current; }

int set_current_device(int index) {
  TORCH_CHECK(index >= 0 && index < kDevices, "there is no device ", index);
  return std::exchange(current, index);
}

c10::Stream stream_of(int index, int64_t place) {
  return c10::Stream(c10::Stream::UNSAFE, device(index), place);
}

c10::Stream current_stream(int index) {
  return stream_of(index, places.at(static_cast<std::size_t>(index)));
}

c10::Stream exchange_stream(c10::Stream stream) {
  int64_t& place = places.at(static_cast<std::size_t>(stream.device_index()));
  return stream_of(stream.device_index(), std::exchange(place, stream.id()));
}

c10::Stream pool_stream(int index, bool high_priority) {
  static std::array<std::atomic<uint32_t>, 2> next;
  const uint32_t first = high_priority ? 1 + kPoolStreams : 1;
  return stream_of(index, first + next[high_priority ? 1 : 0]++ % kPoolStreams);
}

uint32_t number_of(c10::Stream stream) {
  return static_cast<uint32_t>(stream.device_index()) * kStreamsPerDevice +
         static_cast<uint32_t>(stream.id());
}

std::string stream_name(uint32_t number) {
  return "stream " + std::to_string(number % kStreamsPerDevice) + " of device " +
         std::to_string(number / kStreamsPerDevice);
}

}  // namespace phalanx::test_device
