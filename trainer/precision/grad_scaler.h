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

  /// As `unscale` for gradients that are all on `device`, which is no CPU, without waiting for it:
  /// 1 there where they are not finite on some rank, else 0 (float32, a scalar). From then on the
  /// scale is moved there: `take_over` brings what it has come to to the host.
  at::Tensor unscale_there(const std::vector<at::Tensor>& gradients, at::Device device,
                           const Ranks& ranks = {});
  /// The scale (float32) and the good steps (int32) on the device of `unscale_there`, scalars.
  const at::Tensor& scale_there() const { return scale_there_; }
  const at::Tensor& good_steps_there() const { return good_steps_there_; }
  /// What the host has read of them.
  void take_over(double scale, int64_t good_steps);

  const LossScaling& scaling() const { return scaling_; }
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
  at::Tensor scale_there_;  // undefined: the host's
  at::Tensor good_steps_there_;
};

}  // namespace phalanx
