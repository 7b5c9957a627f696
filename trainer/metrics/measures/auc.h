// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "trainer/api/metric.h"

namespace phalanx::metrics {

/// Fed scores of class 1 (or those of both classes, in a last dimension), targets 0 and 1, and
/// perhaps weights: the area under the ROC curve, exact: how often a sample of class 1 has a higher
/// score than one of class 0, equal scores counting half. A target below 0 does not count. NaN
/// where a class has no sample, or a score is NaN. All samples' scores are gathered on every rank:
/// 24 bytes a sample.
std::shared_ptr<const Metric> roc_auc();

}  // namespace phalanx::metrics
