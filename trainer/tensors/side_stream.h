// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>

namespace phalanx {

/// The end of what has been enqueued on a stream so far.
c10::Event end_of(const c10::Stream& stream);
/// The same of the current stream of a device, which is not the CPU: that has no streams.
c10::Event enqueued_so_far(c10::Device device);

/// What is enqueued on the current stream of the event's device from now on waits for it.
void compute_after(const c10::Event& event);

/// A stream of a device beside the one that computes, which waits for what it is told to, and for
/// nothing else.
class SideStream {
 public:
  /// `device` is not the CPU, which has no streams.
  explicit SideStream(c10::Device device);

  /// Runs `enqueue` with this as the current stream: what it enqueues, and the memory that it
  /// takes, belong here.
  void run(const std::function<void()>& enqueue) const;
  /// The same once what has been enqueued for computing so far is over, whose memory it may take
  /// over: for copies of what comes next, a batch or a unit's parameters.
  void run_after_computing(const std::function<void()>& enqueue) const;

  /// What is enqueued here from now on waits for the event, or for what has been enqueued for
  /// computing so far.
  void wait_for(const c10::Event& event) const;
  void wait_for_computing() const;

  /// What is enqueued for computing from now on waits for all that is here so far.
  void join() const;
  /// The host waits for all that is here so far.
  void synchronize() const;

  const c10::Stream& stream() const { return stream_; }

 private:
  c10::Stream stream_;
};

}  // namespace phalanx
