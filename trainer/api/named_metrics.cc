// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/named_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/base/user_error.h"

namespace phalanx {

void require_metric(const std::vector<std::string>& given, const std::string& metric,
                    std::string_view field) {
  if (std::ranges::find(given, metric) != given.end()) return;
  throw UserError(fmt::format("{}: validation gives no '{}'; it gives {}: choose one of these",
                              field, metric, fmt::join(given, ", ")));
}

double metric_in(const NamedValues& values, const std::string& metric, std::string_view field) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  require_metric(names, metric, field);
  return value_of(values, metric, 0);
}

}  // namespace phalanx
