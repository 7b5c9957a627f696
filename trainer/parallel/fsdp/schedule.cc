// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

namespace phalanx::fsdp {

namespace {

std::vector<std::string> names_of(const std::vector<std::unique_ptr<ShardedUnit>>& units) {
  std::vector<std::string> names;
  for (const auto& unit : units) names.push_back(unit->name());
  return names;
}

}  // namespace

Schedule::Schedule(const std::vector<std::unique_ptr<ShardedUnit>>& units, const Ranks& world,
                   Rules rules, std::shared_ptr<const DeviceStreams> streams)
    : units_(units),
      rules_(rules),
      streams_(std::move(streams)),
      order_check_(world, names_of(units), rules.order_timeout),
      used_(world) {}

void Schedule::begin_pass(PassKind kind) {
  if (streams_) streams_->gather.wait_for_computing();  // shards may have been updated
  if (in_backward_) reset();                            // the backward pass before has thrown
  const bool goes_on = std::exchange(is_open_, true);
  if (goes_on) free_all();  // no backward pass came: an update may have come since
  order_check_.begin(kind, goes_on);
  is_checked_ = true;
  if (kind != PassKind::without_backward) synchronize_ = kind == PassKind::training;
  order_.begin();
  gather_outside();
}

void Schedule::gather_outside() {
  for (const auto& unit : units_) {
    if (unit->is_outside()) gather(*unit);
  }
}

void Schedule::end_pass() {
  is_open_ = false;
  free_all();
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
    unit.was_called = unit.needs_reduction = true;
    part_uses_outside();
  }
  prefetch_after(unit, with_backward);
}

// Every rank does the same: it went the same way in the pass before, which the order check has
// seen. Where that is no rule, as in a use of the model, whose order nobody compares, or in a model
// that skips units at random, a unit would be gathered in vain.
void Schedule::prefetch_after(ShardedUnit& unit, bool with_backward) {
  const auto next = order_.call(unit.number(), with_backward);
  if (!next || !rules_.forward_prefetch.value_or(next->is_steady && is_checked_)) return;
  units_[next->unit]->start_gather();
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

std::vector<int64_t> Schedule::weights_versions() const {
  std::vector<int64_t> versions;
  for (const auto& unit : units_) {
    int64_t version = 0;
    for (const auto& flat : unit->flats()) version += flat->version();
    versions.push_back(version);
  }
  return versions;
}

void Schedule::begin_backward(const std::vector<std::shared_ptr<ForwardPass>>& passes) {
  if (in_backward_) reset();  // the one before has thrown
  for (const auto& pass : passes) require_present_weights(*pass);
  // Without a forward pass before it, what that would have gathered may be gone.
  if (!std::exchange(is_open_, true)) {
    order_check_.begin(PassKind::backward_alone, /*goes_on=*/false);
    is_checked_ = true;
    gather_outside();
  }
  in_backward_ = true;
  calls_.clear();
  for (const auto& pass : passes) {
    calls_.insert(calls_.end(), pass->calls.begin(), pass->calls.end());
  }
  place_ = calls_.size();
  for (const auto& unit : units_) unit->open_calls = 0;
  for (const std::size_t call : calls_) {
    ShardedUnit& unit = *units_[call];
    ++unit.open_calls;
    unit.was_called = unit.needs_reduction = true;
  }
}

void Schedule::require_present_weights(const ForwardPass& pass) const {
  const std::vector<int64_t> versions = weights_versions();
  for (const auto& unit : units_) {
    const std::size_t i = unit->number();
    const bool is_used = unit->is_outside() || std::ranges::find(pass.calls, i) != pass.calls.end();
    if (!is_used || pass.versions[i] == versions[i]) continue;
    throw std::logic_error(fmt::format(
        "gradients flow back through a forward pass of a sharded model after which the weights of "
        "{} have moved: call backward before the update, or run the forward pass again",
        unit->name().empty() ? "what lies outside of the units" : "unit " + unit->name()));
  }
}

void Schedule::before_backward(ShardedUnit& unit) {
  gather(unit);
  if (rules_.backward_prefetch == BackwardPrefetch::pre) prefetch_before(unit);
}

// The unit that was called before the present call of this one.
void Schedule::prefetch_before(const ShardedUnit& unit) {
  const auto calls = std::span(calls_).first(place_);
  const auto call = std::find(calls.rbegin(), calls.rend(), unit.number());
  if (call == calls.rend()) return;
  place_ = static_cast<std::size_t>(calls.rend() - call) - 1;
  if (place_ > 0) units_[calls[place_ - 1]]->start_gather();
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
  if (synchronize_) used_.start(used_here());  // it travels while the last gradients do
  finish_reduction();
  if (synchronize_) {
    average_the_rest();
    finish_averages();
    used_.finish();
    publish_gradients();
  }
  in_backward_ = is_open_ = false;
  order_check_.end();
  if (!order_.calls().empty()) order_.end();  // of the newest forward pass
}

// A flag for each parameter, in the units' order: whether this rank's backward passes reached it.
// Those that get no gradient anyway are nothing to ask others about.
std::vector<bool> Schedule::used_here() const {
  std::vector<bool> flags;
  for (const auto& unit : units_) {
    for (const auto& flat : unit->flats()) {
      for (std::size_t i = 0; i < flat->parameters().size(); ++i) {
        flags.push_back(flat->is_used(i) || !flat->requires_grad());
      }
    }
  }
  return flags;
}

// What an earlier micro-batch has left, and this one did not call.
void Schedule::average_the_rest() {
  for (const auto& unit : units_) {
    const bool takes_part = unit->is_outside() || unit->was_called;
    if (takes_part && !unit->is_averaged) average(*unit);
  }
}

// On a device the optimizer's kernels wait for the gradients. Where it runs on the host, that waits
// here: once a step, for copies that were under way since each reduction.
void Schedule::finish_averages() {
  for (const auto& unit : units_) unit->finish_average();
  if (!streams_) return;
  const bool host_reads = std::ranges::any_of(
      units_, [](const auto& unit) { return unit->flats().front()->is_offloaded(); });
  if (!host_reads) return streams_->reduce.join();
  streams_->reduce.wait_for_computing();
  streams_->reduce.synchronize();
}

// A parameter that no rank has used gets no gradient: zeros would let the optimizer's moments and
// decay move it.
void Schedule::publish_gradients() {
  std::size_t next = 0;
  for (const auto& unit : units_) {
    const bool was_called = std::exchange(unit->was_called, false);
    const bool reduced = unit->is_outside() || was_called;
    unit->is_averaged = false;
    for (const auto& flat : unit->flats()) {
      flat->publish(
          [&, first = next](std::size_t i) { return reduced && used_.is_used(first + i); });
      next += flat->parameters().size();
    }
  }
}

void Schedule::reset() {
  reducing_ = nullptr;
  in_backward_ = is_open_ = false;
  for (const auto& unit : units_) unit->reset();
}

}  // namespace phalanx::fsdp
