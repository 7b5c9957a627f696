// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/api/loss.h"
#include "trainer/api/named_values.h"
#include "trainer/metrics/metric_sums.h"

namespace phalanx {

class AnyTask;
class Ranks;

/// What a pass over the validation data comes to: losses weighed by their tokens, the metrics that
/// the task declares, and the samples that were left out as broken.
class ValidationSums {
 public:
  /// Sums over data that this task measures on.
  explicit ValidationSums(const AnyTask& task);

  /// Adds a micro-batch of this rank.
  void add(const Batch& batch, const Loss& loss);

  /// Sums those of all ranks, once, after the last micro-batch: losses and counts over the ranks
  /// among which samples are dealt, metrics over all, as those that share samples have them on one
  /// of them. Every rank calls it.
  void sum_over(const Ranks& data_ranks, const Ranks& all_ranks);

  /// Broken samples of this rank.
  const std::vector<BrokenSample>& broken() const { return broken_; }
  /// How many there are on all ranks, after `sum_over`.
  int64_t broken_on_all_ranks() const { return broken_on_all_ranks_; }

  /// After `sum_over`: whether there is a token that a mean could be over.
  bool has_tokens() const { return tokens_ > 0; }

  /// After `sum_over`: the mean loss, and behind it its parts if there are several. Throws
  /// UserError without a token.
  NamedValues means() const;

  /// After `sum_over`: `means`, behind them what the task derives from these (AnyTask::metrics),
  /// and the metrics that it declares.
  NamedValues values() const;

 private:
  const AnyTask& task_;
  MetricSums metrics_;
  NamedValues metric_values_;  // after `sum_over`
  NamedValues parts_;
  double tokens_ = 0;
  std::vector<BrokenSample> broken_;
  int64_t broken_on_all_ranks_ = 0;
};

}  // namespace phalanx
