// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/api/metric.h"

namespace phalanx::metrics {

/// What precision, recall and F1 of several classes are one number of.
enum class Average {
  binary,  ///< Class 1's, of two.
  micro,   ///< Of all classes' counts together: of one target a sample, that is the accuracy.
  macro,   ///< The mean over the classes that occur among targets or predictions.
};

struct ClassOptions {
  int64_t classes = 2;
  Average average = Average::binary;
  double threshold = 0.5;  ///< Of predictions that are no scores of classes: above it is class 1.
};

/// Each is fed predictions, targets and perhaps weights (PredictedClasses), and throws
/// std::logic_error with its values where a class is not below `classes`. Where nothing could be
/// right (no prediction, no target of a class) it is 0.
///
/// The share of predictions of a class that are right.
std::shared_ptr<const Metric> precision(const ClassOptions& options = {});

/// The share of a class's targets that are predicted.
std::shared_ptr<const Metric> recall(const ClassOptions& options = {});

/// The harmonic mean of both.
std::shared_ptr<const Metric> f1(const ClassOptions& options = {});

/// How often class p is predicted where class t is right: a value NAME_t_p for each two.
std::shared_ptr<const Metric> confusion_matrix(int64_t classes, double threshold = 0.5);

}  // namespace phalanx::metrics
