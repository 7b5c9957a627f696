// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "tests/test_device/clock.h"

/// What is known to be over when, on each stream and to the host. Operations compute at once; their
/// order is kept by clocks, as if they did not.
namespace phalanx::test_device {

/// An operation: the `number`th of its stream, from 1 on.
struct Moment {
  uint32_t stream = 0;
  uint64_t number = 0;
};

/// Begins an operation: it comes after those of its stream, and after what the host knows of.
Moment enqueue(uint32_t stream);

/// What is over once all is that the stream has so far.
Clock clock_of(uint32_t stream);
/// What the host has waited for. Its threads count as one.
Clock clock_of_host();
/// All operations of all streams so far.
Clock all_enqueued();

/// What the stream gets from now on comes after `clock`.
void make_stream_wait(uint32_t stream, const Clock& clock);
/// The host goes on after `clock`: late work that belongs there is carried out first.
void make_host_wait(const Clock& clock);

/// Work of an operation that goes on beside the host, as a collective does: `finish` is called
/// before anything that comes after it.
void add_late_work(Moment moment, std::function<void()> finish);
/// Finishes the late work that `clock` covers.
void finish_late_work(const Clock& clock);

/// What an operation writes into host memory: `write` is called when the host has waited for it, or
/// a stream reads that memory after it.
void add_host_write(Moment moment, std::function<void()> write);
/// Carries out the writes that `clock` covers.
void carry_out_host_writes(const Clock& clock);

}  // namespace phalanx::test_device
