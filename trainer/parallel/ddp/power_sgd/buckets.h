// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/parallel/ddp/power_sgd/counts.h"
#include "trainer/parallel/ddp/power_sgd/options.h"
#include "trainer/parallel/ddp/power_sgd/shared_state.h"
#include "trainer/parallel/ddp/rank_tensors.h"
#include "trainer/ranks/ranks.h"

namespace c10d {
class GradBucket;
}

namespace phalanx::power_sgd {

/// PowerSGD for whole buckets (powerSGD_hook.py: batched_powerSGD_hook): all gradients of a bucket,
/// with zeros behind them, are one square matrix. Faster than Layers and mostly less exact. Its
/// reductions are started as theirs.
class Buckets {
 public:
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;

  Buckets(const BucketOptions& options, Ranks ranks, const std::vector<NamedParameter>& parameters,
          CommHook::Tell tell);

  /// Reduces a bucket; every rank's come in the same order, and the last one last.
  Future run(c10d::GradBucket& bucket);

  std::vector<NamedStateful> kept_states();

 private:
  struct Bucket {
    at::Tensor buffer;
    std::vector<at::Tensor> errors;  ///< Those of its parameters and of the zeros, in its order.
    at::Tensor kept_q;               ///< [side, rank], where starts are warm.
    at::Tensor matrix;               ///< [side, side]
    at::Tensor before;               ///< The matrix before the compression, where errors are kept.
    at::Tensor p;                    ///< [side, rank]
    at::Tensor q;                    ///< [side, rank]
    Pending sum;
    Future reduced;
  };

  void find_memory(const c10d::GradBucket& bucket, Bucket& one, int64_t side);
  void start(Bucket& bucket);
  void keep_errors(const Bucket& bucket) const;
  void finish();

  BucketOptions options_;
  Ranks ranks_;
  CommHook::Tell tell_;
  Counts counts_;
  SharedState shared_;
  RankTensors errors_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> error_of_;
  /// Room for what goes with buckets, which are not known before there are gradients, of all of
  /// them in their order: numbers of 64 bits hold those of any gradient.
  at::Tensor padding_errors_;
  at::Tensor qs_;
  int64_t padding_used_ = 0;
  int64_t qs_used_ = 0;
  std::vector<Bucket> buckets_;  ///< This step's, as far as they have come.
};

}  // namespace phalanx::power_sgd
