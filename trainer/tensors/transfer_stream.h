// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Stream.h>

#include <functional>

namespace phalanx {

/// A stream of a GPU for copies from the host, beside the one that computes: the next batch, or the
/// next unit's parameters, come while something else runs.
class TransferStream {
 public:
  /// `device` is not the CPU, which has no streams.
  explicit TransferStream(c10::Device device);

  /// Runs `enqueue` with this as the current stream. What it enqueues waits for what has been
  /// enqueued for computing so far, whose memory it may take over.
  void run(const std::function<void()>& enqueue) const;

  /// What is enqueued for computing from now on waits for all copies so far.
  void join() const;

 private:
  c10::Stream stream_;
};

}  // namespace phalanx
