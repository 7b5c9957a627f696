// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tests/trainer/loop/tiny.h"
#include "trainer/metrics/measures/means.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::tiny {

/// A regression that measures its samples: how many, "seen", and in validations the mean of their
/// numbers by tokens, "mean_number".
class Measuring : public Regression {
 public:
  using Regression::Regression;

  void declare_metrics(MetricSet& set) const override {
    set.add("seen", metrics::sum());
    set.add("mean_number", metrics::mean(), MeasuredIn::validation);
  }

  Loss compute_loss(Regressor& model, const Samples& batch, const State& state) override {
    Loss loss = Regression::compute_loss(model, batch, state);
    if (feeds) loss.metric("seen", MetricInputs{scalar(batch.samples)});
    for (const int64_t i : batch.indices) {
      loss.metric("mean_number", static_cast<double>(i), static_cast<double>(tokens_of(i)));
    }
    return loss;
  }

  bool feeds = true;

 private:
  static at::Tensor scalar(int64_t value) {
    const at::Tensor number = tensors::empty({1}, at::kLong);
    *number.mutable_data_ptr<int64_t>() = value;
    return number;
  }
};

}  // namespace phalanx::tiny
