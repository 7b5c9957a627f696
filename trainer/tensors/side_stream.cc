// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/side_stream.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace phalanx {
namespace {

c10::impl::VirtualGuardImpl guard_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type());
}

}  // namespace

c10::Event end_of(const c10::Stream& stream) {
  c10::Event event(stream.device_type());
  event.record(stream);
  return event;
}

c10::Event enqueued_so_far(c10::Device device) {
  return end_of(guard_of(device).getStream(device));
}

void compute_after(const c10::Event& event) {
  event.block(guard_of(event.device()).getStream(event.device()));
}

SideStream::SideStream(c10::Device device)
    : stream_(guard_of(device).getStreamFromGlobalPool(device)) {}

void SideStream::run(const std::function<void()>& enqueue) const {
  const c10::StreamGuard guard(stream_);
  enqueue();
}

void SideStream::run_after_computing(const std::function<void()>& enqueue) const {
  wait_for_computing();
  run(enqueue);
}

void SideStream::wait_for(const c10::Event& event) const { event.block(stream_); }

void SideStream::wait_for_computing() const { wait_for(enqueued_so_far(stream_.device())); }

void SideStream::join() const { compute_after(end_of(stream_)); }

void SideStream::synchronize() const { stream_.synchronize(); }

}  // namespace phalanx
