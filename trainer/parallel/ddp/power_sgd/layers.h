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

/// PowerSGD for each gradient by itself (powerSGD_hook.py: powerSGD_hook): a gradient M as a matrix
/// becomes P Q^T, with P the mean of the ranks' M Q, orthogonalized, and Q that of their M^T P. The
/// values are Python's.
///
/// All reductions are started by the thread of the backward pass, in the order of the buckets: the
/// Qs' once the last bucket has come. Python starts them as others end, in an order that ranks may
/// not share.
class Layers {
 public:
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;

  Layers(const LayerOptions& options, Ranks ranks, const std::vector<NamedParameter>& parameters,
         CommHook::Tell tell);

  /// Reduces a bucket; every rank's come in the same order, and the last one last.
  Future run(c10d::GradBucket& bucket);

  std::vector<NamedStateful> kept_states();

 private:
  /// What is known of a parameter from its shape, and what is kept from step to step.
  struct Layer {
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t rank = 0;
    bool is_compressed = false;
    at::Tensor error;  ///< What was left out of this rank's gradient; without feedback undefined.
    at::Tensor q;      ///< [columns, rank], where it is compressed and starts are warm.
  };

  /// Gradients of one shape that are compressed together.
  struct Stack {
    std::vector<at::Tensor> gradients;  ///< [rows, columns], in the bucket.
    std::vector<Layer*> layers;
    at::Tensor matrices;  ///< [gradients, rows, columns]; of one, the gradient itself.
    at::Tensor p;         ///< [gradients, rows, rank], in the bucket's P.
    at::Tensor q;         ///< [gradients, columns, rank], in its Q.
  };

  /// A bucket that is being reduced.
  struct Bucket {
    at::Tensor buffer;
    at::Tensor before;  ///< Its values before the compression, where errors are kept.
    std::vector<at::Tensor> gradients;
    std::vector<Layer*> layers;  ///< Those of the gradients.
    std::vector<at::Tensor> plain;
    at::Tensor plain_values;
    std::vector<Stack> stacks;
    at::Tensor p;
    at::Tensor q;
    Pending plain_sum;
    Pending p_sum;
    Pending q_sum;
    Future reduced;
  };

  void add_errors(Bucket& bucket);
  void divide_gradients(Bucket& bucket);
  std::vector<Stack> stacks_of(const std::vector<Stack>& shapes) const;
  void make_qs(Bucket& bucket);
  void start(Bucket& bucket);
  void compute_qs(Bucket& bucket);
  void decompress(Bucket& bucket);
  void finish();
  Pending start_sum(const at::Tensor& values) const;

  LayerOptions options_;
  Ranks ranks_;
  CommHook::Tell tell_;
  Counts counts_;
  std::vector<Layer> layers_;
  std::unordered_map<const c10::TensorImpl*, Layer*> layer_of_;
  SharedState shared_;
  RankTensors errors_;
  std::vector<Bucket> buckets_;  ///< This step's, as far as they have come.
};

}  // namespace phalanx::power_sgd
