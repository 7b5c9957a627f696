// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/training_feed.h"

#include <stdexcept>

#include "trainer/base/quietly.h"
#include "trainer/loop/leave_out.h"
#include "trainer/loop/step_exchange.h"
#include "trainer/step/activity.h"
#include "trainer/step/stopwatch.h"

namespace phalanx {
namespace {

// Samples that `ranks` ranks share, each of which has counted them. Where one has failed, the run
// stops before their step.
void count_once(StepExchange::Counts& counts, int64_t ranks) {
  if (counts.failures > 0) return;
  for (int64_t* const count : {&counts.samples, &counts.tokens, &counts.broken}) {
    if (*count % ranks != 0) {
      throw std::runtime_error(
          "ranks that compute with the same samples have read different ones: see that all read "
          "the same files, and all of them whole");
    }
    *count /= ranks;
  }
}

}  // namespace

TrainingFeed::TrainingFeed(const PassContext& context, const TrainingConfig& training,
                           std::unique_ptr<BatchSource> data)
    : context_(context),
      training_(training),
      data_(std::move(data)),
      epoch_samples_(data_->samples_per_epoch()) {}

TrainingFeed::~TrainingFeed() {
  quietly([this] { context_.transport.join_copies(); });
}

bool TrainingFeed::epoch_is_over() const { return context_.state.epoch_samples >= epoch_samples_; }

bool TrainingFeed::cuts_epoch() const {
  return epoch_is_over() && epoch_samples_ < data_->samples_per_epoch();
}

void TrainingFeed::start_epoch() {
  data_->start_epoch(context_.state.epoch, context_.state.epoch_samples);
}

void TrainingFeed::prepare(StepResult& result, int64_t step, int64_t micro_batches) {
  const Stopwatch stopwatch(result.data_seconds);
  enter(context_.parts.ranks(), step, "data");
  feed_.prepare(context_.parts.ranks(), micro_batches, [this] {
    auto batch = data_->next();
    if (batch && context_.parts.is_idle()) leave_out(*batch);
    if (batch) context_.transport.start_copies(*batch);
    return batch;
  });
}

bool TrainingFeed::take(OngoingStep& step, int64_t micro_batches) {
  const Ranks& ranks = context_.parts.ranks();
  StepResult& result = step.result;
  enter(ranks, context_.state.step, "data");
  if (!feed_.is_prepared()) prepare(result, context_.state.step, micro_batches);
  context_.transport.join_copies();  // before the step is used or dropped, or the next copies begin
  FedStep fed = feed_.take(ranks);
  count_once(fed.counts, ranks.world_size() / context_.parts.data_ranks().world_size());
  step.micro_batches = std::move(fed.micro_batches);
  result.samples = fed.counts.samples;
  result.tokens = fed.counts.tokens;
  if (step.micro_batches.empty() || stops()) return false;
  result.save_requested = feed_.take_save_request();
  leave_out_broken(step, fed.counts.broken);
  if (result.tokens == 0) {
    throw std::logic_error(
        "the task's batches count no tokens: set Batch::tokens to the number of terms that the "
        "loss is a mean over");
  }
  cast(step);
  if (step_follows(result)) prepare(result, context_.state.step + 1, micro_batches);
  context_.time.data += result.data_seconds;
  return true;
}

void TrainingFeed::drop() {
  context_.transport.join_copies();
  feed_.drop();
}

void TrainingFeed::leave_out_broken(OngoingStep& step, int64_t on_all_ranks) {
  if (on_all_ranks == 0) return;
  StepResult& result = step.result;
  for (const auto& batch : step.micro_batches) {
    result.broken.insert(result.broken.end(), batch->broken.begin(), batch->broken.end());
  }
  broken_.add(result.broken, on_all_ranks);
  broken_.require_at_most(data_->max_broken(), context_.parts.ranks());
  if (result.tokens == 0) {
    throw std::runtime_error("no sample of this step can be read: " +
                             broken_.summary(context_.parts.ranks()));
  }
}

void TrainingFeed::cast(OngoingStep& step) const {
  const Stopwatch stopwatch(step.result.data_seconds);
  enter(context_.parts.ranks(), context_.state.step, "data");
  for (const auto& batch : step.micro_batches) context_.transport.cast(*batch);
}

bool TrainingFeed::step_follows(const StepResult& result) const {
  State after = context_.state;
  after.samples += result.samples;
  after.epoch_samples += result.samples;
  return !training_.limit_reached(after) && after.epoch_samples < epoch_samples_;
}

}  // namespace phalanx
