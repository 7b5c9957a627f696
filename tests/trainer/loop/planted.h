// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "tests/trainer/loop/tiny.h"

namespace phalanx::tiny {

/// The tiny regression, with losses of some micro-batches multiplied.
class Planted : public Regression {
 public:
  /// `factors`: by which of a rank's micro-batches it is, from 1.
  explicit Planted(std::map<std::size_t, double> factors, TaskOptions options = {})
      : Regression(std::move(options)), factors_(std::move(factors)) {}

  Loss compute_loss(Regressor& model, const Samples& batch, const State& state) override {
    Loss loss = Regression::compute_loss(model, batch, state);
    const auto planted = factors_.find(trained.size());
    const bool is_here = batch.phase == Phase::train && planted != factors_.end();
    return is_here ? Loss(loss.total().mul(planted->second)) : std::move(loss);
  }

 private:
  std::map<std::size_t, double> factors_;
};

}  // namespace phalanx::tiny
