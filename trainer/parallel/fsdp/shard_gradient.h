// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/parallel/fsdp/device_streams.h"
#include "trainer/parallel/fsdp/flat_options.h"
#include "trainer/parallel/fsdp/groups.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// A rank's part of the gradient of a flat parameter: what reductions over the shard group leave,
/// added up, and then averaged over all ranks, with those of copies. On a device that is a matter
/// of DeviceStreams::reduce, in memory of the stream that computes.
class ShardGradient {
 public:
  /// `groups` outlive it. `shard_size`: elements of a part. `streams`: nullptr on the CPU.
  ShardGradient(const Groups& groups, const FlatTypes& types, int64_t shard_size,
                std::shared_ptr<const DeviceStreams> streams);

  ShardGradient(const ShardGradient&) = delete;
  ShardGradient& operator=(const ShardGradient&) = delete;
  ~ShardGradient();

  /// Sums gradients of the whole over the shard group. `finish_reduce` waits, and adds this rank's
  /// part to what earlier reductions left.
  void start_reduce(at::Tensor whole);
  void finish_reduce();
  bool is_reducing() const { return reduce_.has_value(); }

  /// Makes the sum of the reductions the mean over all ranks.
  void start_average();
  void finish_average();
  bool is_averaging() const { return average_.has_value(); }

  /// The mean, once the reductions' stream is joined, or has come to its end where the host reads
  /// it; undefined: nothing was reduced. Begins anew.
  at::Tensor take_mean();
  /// Forgets all of it: after an error. The device goes on once what is under way is over; the
  /// host waits for nothing but copies into its memory.
  void reset();

  /// Bytes of the whole that is being reduced, and of the parts.
  int64_t whole_bytes() const;
  int64_t bytes() const;

 private:
  template <class Enqueue>
  void beside_computing(const Enqueue& enqueue) const;
  void finish_what_is_under_way() noexcept;
  bool arrives_as_sum() const;
  void take_reduced();
  void start_scatter();
  void add_reduced(bool is_first);
  void scale();
  double divide_before_reduction() const;

  const Groups& groups_;
  FlatTypes types_;
  int64_t shard_size_;
  std::shared_ptr<const DeviceStreams> streams_;
  at::Tensor whole_;     ///< What is being reduced.
  at::Tensor reduced_;   ///< This rank's part of the reduction under way.
  at::Tensor averaged_;  ///< What is being averaged over copies.
  at::Tensor sum_;       ///< The sum of the reductions so far.
  std::optional<Pending> reduce_;
  std::optional<Pending> average_;
};

}  // namespace phalanx::fsdp
