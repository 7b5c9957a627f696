// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/api/stateful.h"
#include "trainer/api/tracked_metric.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

/// The section `early_stopping`, under the names of Lightning's callback.
struct EarlyStoppingConfig {
  std::optional<std::string> metric;
  Better mode = Better::lower;
  int64_t patience = 3;
  double min_delta = 0;
  std::optional<double> threshold;
  bool check_finite = true;

  static void describe(config::Schema<EarlyStoppingConfig>& s);
};

/// Whether a run should end, by the values that its validations have given for one metric.
class EarlyStopping : public Stateful {
 public:
  /// `config` names a metric.
  explicit EarlyStopping(EarlyStoppingConfig config);

  /// The next validation, of this step, has given `value`.
  void take(double value, int64_t step);

  /// Why the run should end, in a few words; empty: it goes on.
  std::string reason() const;

  std::string json() const override;
  void restore(std::string_view json) override;

 private:
  EarlyStoppingConfig config_;
  TrackedMetric metric_;
  std::optional<double> last_;
  int64_t without_progress_ = 0;  ///< Validations since the best.
};

}  // namespace phalanx
