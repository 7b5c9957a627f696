// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/step_exchange.h"

#include <span>

#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

// What is summed over the ranks; the slots for signals follow.
enum Slot : std::size_t { kSamples, kTokens, kBroken, kFailures, kSignals };

constexpr std::size_t kSlots = kSignals + SignalAgreement::kSlots;

template <class Number>
std::span<Number, SignalAgreement::kSlots> signals_in(Number* values) {
  return std::span<Number, kSlots>(values, kSlots).template last<SignalAgreement::kSlots>();
}

}  // namespace

void StepExchange::start(const Ranks& ranks, Counts mine) {
  if (ranks.is_single_rank()) {
    alone_ = mine;
    return;
  }
  values_ = tensors::empty({kSlots}, at::kLong);
  const std::span values(values_.mutable_data_ptr<int64_t>(), kSlots);
  values[kSamples] = mine.samples;
  values[kTokens] = mine.tokens;
  values[kBroken] = mine.broken;
  values[kFailures] = mine.failures;
  sent_ = signals_.put(signals_in(values.data()));
  pending_ = ranks.start_all_reduce(values_);
}

StepExchange::Counts StepExchange::finish() {
  if (!values_.defined()) {
    signals_.take_own();
    return alone_;
  }
  pending_.wait();
  const std::span sums(values_.const_data_ptr<int64_t>(), kSlots);
  signals_.take(signals_in(sums.data()), sent_);
  return {.samples = sums[kSamples],
          .tokens = sums[kTokens],
          .broken = sums[kBroken],
          .failures = sums[kFailures]};
}

}  // namespace phalanx
