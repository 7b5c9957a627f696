// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/transfer_stream.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "trainer/tensors/side_stream.h"

namespace phalanx {

TransferStream::TransferStream(c10::Device device)
    : stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

void TransferStream::run(const std::function<void()>& enqueue) const {
  enqueued_so_far(stream_.device()).block(stream_);
  const c10::StreamGuard guard(stream_);
  enqueue();
}

void TransferStream::join() const { compute_after(end_of(stream_)); }

}  // namespace phalanx
