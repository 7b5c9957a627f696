// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Where the wall time of this process's training went, in seconds.
struct TimeSplit {
  double data = 0;              ///< Waiting for micro-batches.
  double forward_backward = 0;  ///< Losses and gradients.
  double update = 0;            ///< Clipping and the optimizer.
  double validation = 0;        ///< Passes over the validation data.
  double total = 0;             ///< All of it; the rest is what mixins do (saving, logging).
};

}  // namespace phalanx
