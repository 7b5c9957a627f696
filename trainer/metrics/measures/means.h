// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "trainer/api/metric.h"

namespace phalanx::metrics {

/// Fed values, and perhaps a weight for each: their mean by weight.
std::shared_ptr<const Metric> mean();

/// Fed values: their sum. Of true and false it counts the true ones.
std::shared_ptr<const Metric> sum();

/// Fed values: how many these are.
std::shared_ptr<const Metric> count();

/// Fed numerators and denominators: the sum of the ones divided by that of the others.
std::shared_ptr<const Metric> ratio();

/// Fed losses in nats, and perhaps a weight for each, the tokens that it is a mean over: e to the
/// power of their mean.
std::shared_ptr<const Metric> perplexity();

}  // namespace phalanx::metrics
