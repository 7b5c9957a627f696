// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// How a loss scale moves; names and defaults of torch.amp.GradScaler.
struct LossScaling {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
};

/// Keeps small fp16 gradients from becoming zero: the loss is multiplied by a scale, gradients are
/// divided by it before they are used, and a step whose gradients have overflowed is skipped and
/// lowers the scale (torch.amp.GradScaler; sharded over ranks, ShardedGradScaler).
///
///   scaler.scale(loss).backward();
///   if (scaler.unscale(gradients, ranks)) optimizer.step(lr);
class GradScaler {
 public:
  explicit GradScaler(const LossScaling& scaling);

  /// The loss, at least in single precision, times the scale.
  at::Tensor scale(const at::Tensor& loss) const;

  /// Divides the gradients by the scale, in place. True: they are finite on all ranks, so move the
  /// weights by them; the scale has been moved for the next loss either way. Every rank calls it.
  bool unscale(const std::vector<at::Tensor>& gradients, const Ranks& ranks = {});

  double current_scale() const { return scale_; }
  /// Steps without overflow since the scale has changed.
  int64_t good_steps() const { return good_steps_; }
  /// Goes on where a run was left.
  void restore(double scale, int64_t good_steps);

 private:
  void move_scale(bool finite);

  LossScaling scaling_;
  float scale_;  // as Python's, which a factor that is no power of two would show
  int64_t good_steps_ = 0;
};

}  // namespace phalanx
