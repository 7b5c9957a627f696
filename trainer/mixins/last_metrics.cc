// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/last_metrics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "trainer/base/unsigned_nan.h"

namespace phalanx {
namespace {

// More of them, as a confusion matrix has, are for the records.
constexpr size_t kShown = 8;

std::string line_of(const char* phase, const NamedValues& metrics) {
  if (metrics.empty()) return {};
  std::vector<std::string> parts;
  for (const auto& [name, value] : metrics) {
    if (parts.size() == kShown) break;
    parts.push_back(fmt::format("{} {:.4g}", name, unsigned_nan(value)));
  }
  std::string line = fmt::format("{} {}", phase, fmt::join(parts, ", "));
  if (metrics.size() > kShown) line += fmt::format(" and {} more", metrics.size() - kShown);
  return line;
}

}  // namespace

void LastMetrics::take_step(const NamedValues& metrics) {
  if (!metrics.empty()) trained_ = metrics;
}

void LastMetrics::take_validation(const NamedValues& values) {
  validated_.clear();
  for (const auto& value : values) {
    if (std::ranges::find(validated_names_, value.first) != validated_names_.end()) {
      validated_.push_back(value);
    }
  }
}

std::string LastMetrics::text() const {
  const std::string trained = line_of("train", trained_);
  const std::string validated = line_of("validation", validated_);
  return trained + (trained.empty() || validated.empty() ? "" : "; ") + validated;
}

}  // namespace phalanx
