// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "trainer/api/model_base.h"

namespace phalanx {

/// The values that a model's buffers have at a moment (running statistics, counters, a teacher's
/// weights), to give them back to it.
class KeptBuffers {
 public:
  /// Copies them.
  explicit KeptBuffers(ModelBase& model);

  /// Sets the buffers to these values, in place.
  void give_back();

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  ///< Each with its value.
};

}  // namespace phalanx
