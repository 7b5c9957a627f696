// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "trainer/parallel/fsdp/flat_options.h"
#include "trainer/parallel/fsdp/groups.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// A rank's part of the gradient of a flat parameter: what reductions over the shard group leave,
/// added up, and then averaged over all ranks, with those of copies.
class ShardGradient {
 public:
  /// `groups` outlive it. `shard_size`: elements of a part.
  ShardGradient(const Groups& groups, const FlatTypes& types, int64_t shard_size);

  /// Sums gradients of the whole over the shard group. `finish_reduce` waits, and adds this rank's
  /// part to what earlier reductions left.
  void start_reduce(at::Tensor whole);
  void finish_reduce();
  bool is_reducing() const { return reduce_.has_value(); }

  /// Makes the sum of the reductions the mean over all ranks.
  void start_average();
  void finish_average();
  bool is_averaging() const { return average_.has_value(); }

  /// The sum; undefined: nothing was reduced.
  const at::Tensor& sum() const { return sum_; }
  void drop_sum() { sum_.reset(); }
  /// Forgets all of it and waits for nothing: after an error.
  void reset();

  /// Bytes of the whole that is being reduced, and of the parts.
  int64_t whole_bytes() const;
  int64_t bytes() const;

 private:
  at::Tensor take_reduced();
  double divide_before_reduction() const;

  const Groups& groups_;
  FlatTypes types_;
  int64_t shard_size_;
  at::Tensor whole_;     ///< What is being reduced.
  at::Tensor reduced_;   ///< This rank's part of the reduction under way.
  at::Tensor averaged_;  ///< What is being averaged over copies.
  at::Tensor sum_;       ///< Of reductions.
  std::optional<Pending> reduce_;
  std::optional<Pending> average_;
};

}  // namespace phalanx::fsdp
