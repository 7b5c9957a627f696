// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/step_feed.h"

#include <utility>

#include "trainer/ranks/failures/communication_error.h"

namespace phalanx {

void StepFeed::prepare(const Ranks& ranks, int64_t micro_batches, const Fetch& fetch) {
  Prepared& prepared = prepared_.emplace();
  FedStep& step = prepared.step;
  try {
    for (int64_t i = 0; i < micro_batches; ++i) {
      auto batch = fetch();
      if (!batch) break;
      step.counts.samples += batch->counted_samples();
      step.counts.tokens += batch->counted_tokens();
      step.counts.broken += static_cast<int64_t>(batch->broken.size());
      step.micro_batches.push_back(std::move(batch));
    }
  } catch (...) {
    prepared.error = std::current_exception();
    step.counts = {.failures = 1};
  }
  exchange_.start(ranks, step.counts);
}

FedStep StepFeed::take(const Ranks& ranks) {
  Prepared prepared = *std::exchange(prepared_, std::nullopt);
  prepared.step.counts = exchange_.finish();
  if (prepared.step.counts.failures == 0 || stops(ranks)) return std::move(prepared.step);
  if (prepared.error) std::rethrow_exception(prepared.error);
  throw CommunicationError("the data of another rank failed");
}

void StepFeed::drop() {
  if (!prepared_) return;
  prepared_.reset();
  exchange_.finish();
}

}  // namespace phalanx
