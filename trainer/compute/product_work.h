// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "trainer/compute/weight_shape.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::compute {

/// The products of a model's linear layers, one of each shape, to be computed again and again on
/// one thread.
class ProductWork {
 public:
  explicit ProductWork(std::span<const WeightShape> weights);

  /// Computes them once. Returns the seconds of CPU time that all weights together need.
  double run() const;

  /// Whether single results are as near to a sum in double precision as rounding explains.
  bool is_correct() const;

 private:
  struct Layer {
    double count = 0;     // weights of about this shape
    at::Tensor input;     // [samples, in]
    at::Tensor weight;    // [out, in]
    at::Tensor gradient;  // [samples, out]
  };

  std::vector<Layer> layers_;
};

}  // namespace phalanx::compute
