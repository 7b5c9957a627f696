// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/api/named_values.h"

namespace phalanx {

/// The last values of a task's metrics, for the end of a run.
class LastMetrics {
 public:
  /// `validated` names those of a validation; its other values are no metrics.
  explicit LastMetrics(std::vector<std::string> validated = {})
      : validated_names_(std::move(validated)) {}

  void take_step(const NamedValues& metrics);
  void take_validation(const NamedValues& values);

  /// "train accuracy 0.9375; validation accuracy 0.9531, f1 0.95"; empty without any.
  std::string text() const;

 private:
  std::vector<std::string> validated_names_;
  NamedValues trained_;
  NamedValues validated_;
};

}  // namespace phalanx
