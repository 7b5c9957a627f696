// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "trainer/api/batch_source.h"
#include "trainer/loop/broken_samples.h"
#include "trainer/loop/step_feed.h"
#include "trainer/loop/training_config.h"
#include "trainer/step/ongoing_step.h"
#include "trainer/step/pass_context.h"

namespace phalanx {

/// Feeds a training's steps from its data: micro-batches where the model is, the counts of all
/// ranks, and without the samples that cannot be read.
class TrainingFeed {
 public:
  /// What `context` refers to, and `training`, must outlive it.
  TrainingFeed(const PassContext& context, const TrainingConfig& training,
               std::unique_ptr<BatchSource> data);
  /// Waits for copies under way before the batches that they fill are freed.
  ~TrainingFeed();
  TrainingFeed(const TrainingFeed&) = delete;
  TrainingFeed& operator=(const TrainingFeed&) = delete;

  const BatchSource& data() const { return *data_; }
  SignalAgreement& signals() { return feed_.signals(); }
  /// Whether the run is to stop by a signal that all ranks know of.
  bool stops() const { return feed_.stops(context_.parts.ranks()); }
  /// Whether the present epoch's samples are all consumed.
  bool epoch_is_over() const;
  /// Has epochs end after so many samples, over all ranks: at most those of the data.
  void end_epochs_after(int64_t samples) { epoch_samples_ = samples; }
  /// Whether the present epoch is over before its data.
  bool cuts_epoch() const;

  /// Goes to the place in the data where the state is.
  void start_epoch();
  /// Fills the step with its micro-batches, up to so many a rank, and begins to fetch those of the
  /// next one. False where the data ends or the run stops before it. Throws std::runtime_error
  /// where more samples are broken than may be, on all ranks alike.
  bool take(OngoingStep& step, int64_t micro_batches);
  /// Drops what was fetched for a step that does not come. Throws CommunicationError.
  void drop();

  /// Those that this process has left out.
  const BrokenSamples& broken() const { return broken_; }

 private:
  // Fetches a step's micro-batches, and begins to exchange their counts.
  void prepare(StepResult& result, int64_t step, int64_t micro_batches);
  void leave_out_broken(OngoingStep& step, int64_t on_all_ranks);
  void cast(OngoingStep& step) const;
  // Whether one follows this one in its epoch, as far as can be known before this one's end.
  bool step_follows(const StepResult& result) const;

  PassContext context_;
  const TrainingConfig& training_;
  std::unique_ptr<BatchSource> data_;
  StepFeed feed_;
  int64_t epoch_samples_;
  BrokenSamples broken_;
};

}  // namespace phalanx
