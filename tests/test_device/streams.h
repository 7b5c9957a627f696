// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <string>

/// The devices and their streams, and which of them a thread of the host works on.
namespace phalanx::test_device {

inline constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
inline constexpr c10::DispatchKey kKey = c10::DispatchKey::PrivateUse1;
inline constexpr int kDevices = 2;
/// Streams of each priority on a device, beside its default stream: as CUDA's pools have.
inline constexpr uint32_t kPoolStreams = 32;
inline constexpr uint32_t kStreamsPerDevice = 1 + 2 * kPoolStreams;

inline c10::Device device(int index = 0) { return {kType, static_cast<c10::DeviceIndex>(index)}; }

int current_device();
/// Returns the one before. Throws c10::Error for a number beyond kDevices.
int set_current_device(int index);

/// A stream of a device by its place there; 0 is the default stream.
c10::Stream stream_of(int device, int64_t place);
c10::Stream current_stream(int device);
/// Returns the one before.
c10::Stream exchange_stream(c10::Stream stream);
/// The next of the device's pool, in turn.
c10::Stream pool_stream(int device, bool high_priority);

/// Its number among those of all devices: its place in a Clock.
uint32_t number_of(c10::Stream stream);
inline uint32_t current_number(int device) { return number_of(current_stream(device)); }
/// "stream 3 of device 0".
std::string stream_name(uint32_t number);

}  // namespace phalanx::test_device
