// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/named_values.h"

namespace phalanx {

/// Throws UserError where a field names a metric that is not among those that a validation gives.
void require_metric(const std::vector<std::string>& given, const std::string& metric,
                    std::string_view field);

/// The value of the metric that a field names. Throws as require_metric.
double metric_in(const NamedValues& values, const std::string& metric, std::string_view field);

}  // namespace phalanx
