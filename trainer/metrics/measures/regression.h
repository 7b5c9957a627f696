// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "trainer/api/metric.h"

namespace phalanx::metrics {

/// Each is fed predictions, targets and perhaps weights, as many of each.
///
/// The mean square of the errors.
std::shared_ptr<const Metric> mean_squared_error();

/// Its square root.
std::shared_ptr<const Metric> root_mean_squared_error();

/// The mean size of the errors.
std::shared_ptr<const Metric> mean_absolute_error();

/// The coefficient of determination: 1 less the squares of the errors divided by those of the
/// targets about their mean. Of targets that are all equal 1 without any error, else 0, as in
/// scikit-learn; NaN of fewer than two.
std::shared_ptr<const Metric> r2();

}  // namespace phalanx::metrics
