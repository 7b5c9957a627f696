// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/state.h"

namespace phalanx {

class Metric;

/// Where a metric is measured.
enum class MeasuredIn { training, validation, both };

/// The metrics that a task declares.
class MetricSet {
 public:
  struct Entry {
    std::string name;
    std::shared_ptr<const Metric> metric;
    MeasuredIn where;
  };

  /// Throws std::invalid_argument for a name that is empty, has blanks or slashes, or is that of
  /// another value of a record.
  void add(std::string name, std::shared_ptr<const Metric> metric,
           MeasuredIn where = MeasuredIn::both);

  const std::vector<Entry>& entries() const { return entries_; }

  /// The names of all values of a phase.
  std::vector<std::string> value_names(Phase phase) const;

 private:
  std::vector<Entry> entries_;
};

/// Whether a metric is measured in this phase.
bool is_measured(MeasuredIn where, Phase phase);

/// "f1" without a suffix, "confusion_0_1" with "0_1".
std::string metric_value_name(const std::string& metric, const std::string& suffix);

}  // namespace phalanx
