// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/schedule.h"

#include <algorithm>
#include <span>
#include <utility>

#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {

namespace {

std::vector<std::string> names_of(const std::vector<std::unique_ptr<ShardedUnit>>& units) {
  std::vector<std::string> names;
  for (const auto& unit : units) names.push_back(unit->name());
  return names;
}

// A flag for each parameter, in the units' order: whether this rank's backward passes reached it.
at::Tensor used_here(const std::vector<std::unique_ptr<ShardedUnit>>& units) {
  std::vector<int> flags;
  for (const auto& unit : units) {
    for (const auto& flat : unit->flats()) {
      for (std::size_t i = 0; i < flat->parameters().size(); ++i) flags.push_back(flat->is_used(i));
    }
  }
  const at::Tensor used = tensors::empty({static_cast<int64_t>(flags.size())}, at::kInt);
  std::copy(flags.begin(), flags.end(), used.mutable_data_ptr<int>());
  return used;
}

}  // namespace

Schedule::Schedule(const std::vector<std::unique_ptr<ShardedUnit>>& units, Ranks world, Rules rules)
    : units_(units),
      world_(std::move(world)),
      rules_(rules),
      order_check_(world_, names_of(units), rules.order_timeout) {}

void Schedule::begin_pass(PassKind kind) {
  if (in_backward_) reset();                      // the backward pass before has thrown
  if (std::exchange(is_open_, true)) free_all();  // it never came: an update may have come since
  order_check_.begin(kind);
  is_checked_ = true;
  synchronize_ = kind == PassKind::training;
  calls_ = 0;
  last_order_ = std::exchange(order_, {});
  for (const auto& unit : units_) {
    unit->open_calls = 0;
    if (unit->is_outside()) gather(*unit);
  }
}

void Schedule::end_pass() {
  is_open_ = false;
  free_all();
  order_ = last_order_;
  if (is_checked_) order_check_.end();
}

void Schedule::free_all() {
  for (const auto& unit : units_) unit->free();
}

void Schedule::begin_use() {
  begin_pass(PassKind::without_backward);
  is_checked_ = false;
}

void Schedule::end_use() { end_pass(); }

// Whether it is gathered depends on what went before; that it is needed now does not.
void Schedule::gather(ShardedUnit& unit) {
  if (is_checked_) order_check_.next(Action::use, unit.number());
  unit.finish_gather();
}

void Schedule::before_forward(ShardedUnit& unit, bool with_backward) {
  gather(unit);
  if (with_backward) {
    order_.push_back(&unit);
    unit.was_called = unit.needs_reduction = true;
    part_uses_outside();
  }
  if (rules_.forward_prefetch && calls_ + 1 < last_order_.size() && last_order_[calls_] == &unit) {
    last_order_[calls_ + 1]->start_gather();
  }
  ++calls_;
}

// Those before the unit's forward from those after it.
void Schedule::part_uses_outside() {
  for (const auto& unit : units_) {
    if (!unit->is_outside()) continue;
    for (const auto& flat : unit->flats()) flat->part_uses();
  }
}

void Schedule::after_forward(ShardedUnit& unit, bool with_backward) {
  if (!rules_.reshard_after_forward || in_backward_) return;
  if (with_backward) {
    unit.free_after_forward();
  } else {
    unit.free();
  }
}

bool Schedule::before_recomputation(ShardedUnit& unit) {
  const bool was_gathered = unit.is_gathered();
  gather(unit);
  return !was_gathered;
}

// Its own backward comes later, after that of others within the same recomputation.
void Schedule::after_recomputation(ShardedUnit& unit, bool was_gathered_for_it) {
  if (was_gathered_for_it && rules_.reshard_after_forward) unit.free();
}

void Schedule::before_backward(ShardedUnit* unit) {
  if (!in_backward_) {
    in_backward_ = true;
    place_ = order_.size();
  }
  if (unit == nullptr) return;
  gather(*unit);
  if (rules_.backward_prefetch == BackwardPrefetch::pre) prefetch_before(*unit);
}

// The unit that was called before the present call of this one.
void Schedule::prefetch_before(const ShardedUnit& unit) {
  const auto calls = std::span(order_).first(place_);
  const auto call = std::find(calls.rbegin(), calls.rend(), &unit);
  if (call == calls.rend()) return;
  place_ = static_cast<std::size_t>(calls.rend() - call) - 1;
  if (place_ > 0) order_[place_ - 1]->start_gather();
}

void Schedule::after_backward(ShardedUnit& unit) {
  const bool is_over = --unit.open_calls == 0;  // or it was called before, too
  if (is_over) release(unit);
  if (rules_.backward_prefetch == BackwardPrefetch::post) prefetch_before(unit);
  if (is_over && reduces_now()) reduce(unit);
}

bool Schedule::reduces_now() const {
  return synchronize_ || rules_.accumulated == AccumulatedGradients::sharded;
}

// Without reductions to come the next micro-batch needs it again at once.
void Schedule::release(ShardedUnit& unit) {
  if (rules_.reshard_after_forward || synchronize_) unit.free();
}

// One at a time: the memory of two units' whole gradients is enough.
void Schedule::reduce(ShardedUnit& unit) {
  finish_reduction();
  order_check_.next(Action::reduce, unit.number());
  unit.start_reduce();
  reducing_ = &unit;
}

// What has been reduced for the last time goes over the copies while the backward pass goes on.
void Schedule::finish_reduction() {
  if (reducing_ == nullptr) return;
  ShardedUnit& unit = *std::exchange(reducing_, nullptr);
  unit.finish_reduce();
  if (synchronize_) average(unit);
}

void Schedule::average(ShardedUnit& unit) {
  order_check_.next(Action::average, unit.number());
  unit.start_average();
}

void Schedule::end_backward() {
  for (const auto& unit : units_) {
    release(*unit);
    if (reduces_now() && (unit->is_outside() || unit->needs_reduction)) reduce(*unit);
  }
  at::Tensor used;
  Pending agreement;
  if (synchronize_) {  // it travels while the last gradients do
    used = used_here(units_);
    agreement = world_.start_all_reduce(used, Reduction::maximum);
  }
  finish_reduction();
  if (synchronize_) {
    average_the_rest();
    agreement.wait();
    publish_gradients(used);
  }
  in_backward_ = is_open_ = false;
  order_check_.end();
}

// What an earlier micro-batch has left, and this one did not call.
void Schedule::average_the_rest() {
  for (const auto& unit : units_) {
    const bool takes_part = unit->is_outside() || unit->was_called;
    if (takes_part && !unit->is_averaged) average(*unit);
  }
}

// A parameter that no rank has used gets no gradient: zeros would let the optimizer's moments and
// decay move it.
void Schedule::publish_gradients(const at::Tensor& used) {
  const std::span flags(used.const_data_ptr<int>(), static_cast<std::size_t>(used.numel()));
  std::size_t next = 0;
  for (const auto& unit : units_) {
    const bool was_called = std::exchange(unit->was_called, false);
    const bool reduced = unit->is_outside() || was_called;
    unit->is_averaged = false;
    unit->finish_average();
    for (const auto& flat : unit->flats()) {
      flat->publish([&, first = next](std::size_t i) { return reduced && flags[first + i] != 0; });
      next += flat->parameters().size();
    }
  }
}

void Schedule::reset() {
  reducing_ = nullptr;
  order_.clear();
  in_backward_ = false;
  for (const auto& unit : units_) unit->reset();
}

}  // namespace phalanx::fsdp
