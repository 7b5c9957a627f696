// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/api/batch.h"

namespace phalanx {

/// Has a micro-batch count nowhere: the rank that computes its samples counts them.
inline void leave_out(Batch& batch) {
  batch.counts = false;
  batch.broken.clear();
}

}  // namespace phalanx
