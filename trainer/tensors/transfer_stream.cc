// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/transfer_stream.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace phalanx {
namespace {

c10::impl::VirtualGuardImpl guard_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

void make_wait(const c10::Stream& later, const c10::Stream& earlier) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

TransferStream::TransferStream(c10::Device device)
    : stream_(guard_of(device).getStreamFromGlobalPool(device)) {}

void TransferStream::run(const std::function<void()>& enqueue) const {
  make_wait(stream_, guard_of(stream_.device()).getStream(stream_.device()));
  const c10::StreamGuard guard(stream_);
  enqueue();
}

void TransferStream::join() const {
  make_wait(guard_of(stream_.device()).getStream(stream_.device()), stream_);
}

}  // namespace phalanx
