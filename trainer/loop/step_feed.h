// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/api/batch.h"
#include "trainer/loop/signal_agreement.h"
#include "trainer/loop/step_exchange.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {

/// One step: this rank's micro-batches, and the samples and tokens of all ranks.
struct FedStep {
  std::vector<std::unique_ptr<Batch>> micro_batches;  ///< Empty where the data has ended.
  StepExchange::Counts counts;
};

/// Feeds an epoch's steps, one ahead: while a step computes, the next one's micro-batches are here
/// already, and their counts travel between the ranks. All ranks prepare, take and drop the same
/// steps.
class StepFeed {
 public:
  /// The next micro-batch; nullptr at the end of the epoch.
  using Fetch = std::function<std::unique_ptr<Batch>()>;

  /// Fetches up to `micro_batches` and sends their counts. What the data throws, `take` rethrows:
  /// the step before is not lost by it.
  void prepare(const Ranks& ranks, int64_t micro_batches, const Fetch& fetch);
  bool is_prepared() const { return prepared_.has_value(); }
  /// The prepared step, with the counts of all ranks. Throws what its data threw, a
  /// CommunicationError where that of another rank did; neither in a run that stops before it.
  FedStep take(const Ranks& ranks);
  /// Drops the step that was prepared, if one was: the run ends before it. Throws
  /// CommunicationError.
  void drop();

  SignalAgreement& signals() { return exchange_.signals(); }
  bool stops(const Ranks& ranks) const { return exchange_.stops(ranks); }
  bool take_save_request() { return exchange_.take_save_request(); }

 private:
  struct Prepared {
    FedStep step;
    std::exception_ptr error;
  };

  std::optional<Prepared> prepared_;
  StepExchange exchange_;
};

}  // namespace phalanx
