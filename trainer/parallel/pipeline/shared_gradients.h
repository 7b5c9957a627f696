// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/parallel/pipeline/held_parameters.h"
#include "trainer/parallel/pipeline/letters.h"

namespace phalanx::pipeline {

/// The gradients of what lies outside the units: the first and the last stage hold it, and each has
/// a part of its gradients, as of a head that is tied to an embedding. Other stages have none.
class SharedGradients {
 public:
  /// `stages`: how many there are.
  SharedGradients(std::span<const HeldParameter> parameters, int64_t stage, int64_t stages);

  /// Before a backward pass adds to gradients that are sums of both stages: takes them away, until
  /// the next `sum`.
  void set_aside_sums();

  /// Sums the gradients of both stages, which call it. Throws WorkerLost, and std::logic_error
  /// where they do not hold the same.
  void sum(Letters& letters);

 private:
  struct Shared {
    at::Tensor parameter;
    at::Tensor earlier;  ///< The sum of both stages that was set aside.
  };

  std::vector<Shared> shared_;
  int64_t other_stage_ = 0;
  int64_t round_ = 0;
  bool are_sums_ = false;
};

}  // namespace phalanx::pipeline
