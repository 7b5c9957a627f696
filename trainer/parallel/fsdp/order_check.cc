// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/order_check.h"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <utility>

#include "trainer/ranks/failures/call_within.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/tensors/tensors.h"

namespace phalanx::fsdp {
namespace {

// Counts the checks that this process has made: all ranks make theirs in the same order.
std::atomic<int64_t> numbers = 0;

// Marks messages between neighbours, apart from those that others send in the same group.
constexpr int kTag = 1 << 20;

constexpr const char* kAdvice =
    "Every rank must call the same units in the same order: look for a branch that depends on the "
    "rank or on its data";

double in_seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

OrderCheck::OrderCheck(Ranks ranks, std::vector<std::string> units,
                       std::chrono::milliseconds timeout)
    : ranks_(std::move(ranks)),
      units_(std::move(units)),
      timeout_(timeout),
      number_(numbers.fetch_add(1)) {}

void OrderCheck::begin(PassKind kind, bool goes_on) {
  ++passes_;
  const auto has_backward = [](PassKind of) { return of != PassKind::without_backward; };
  const bool is_other = kind_ && has_backward(*kind_) != has_backward(kind);
  const PassStep step{.action = Action::begin, .unit = static_cast<std::size_t>(kind)};
  if (goes_on && has_backward(*kind_)) {
    if (!is_other) return compare(step);
    known_passes_.add(*kind_, steps_);  // it has come to its end here
  }
  steps_.clear();
  kind_ = kind;
  known_ = known_passes_.expected(kind);
  has_order_ = known_ != nullptr;
  if (!is_other || ranks_.is_single_rank()) return;
  const std::chrono::milliseconds timeout = ranks_.timeout();
  if (others_come(compare_in_store(step), timeout)) return;
  // Or they hang, which only they can tell.
  throw CommunicationError(fmt::format(
      "rank {} {}, and the wait for all others to do the same failed in {}: Timed out after {} s "
      "(parallel.timeout). Every rank must train and evaluate as often as the others: look for a "
      "branch that depends on the rank, or for data that ends earlier on one",
      ranks_.rank(), describe(step), ranks_.activity(), in_seconds(timeout)));
}

void OrderCheck::next(Action action, std::size_t unit) {
  compare({.action = action, .unit = unit});
}

void OrderCheck::compare(const PassStep& step) {
  const std::size_t place = steps_.size();
  steps_.push_back(step);
  if (has_order_ && place < known_->size() && (*known_)[place] == step) return;
  if (ranks_.is_single_rank()) return;
  if (has_order_) {
    leave_order(step);
  } else {
    compare_with_neighbour(step);
  }
}

// Every rank sends before it receives, so none waits in a circle.
void OrderCheck::compare_with_neighbour(const PassStep& step) const {
  const int64_t world_size = ranks_.world_size();
  const int64_t before = (ranks_.rank() + world_size - 1) % world_size;
  const at::Tensor mine = tensors::empty({2}, at::kLong);
  mine.mutable_data_ptr<int64_t>()[0] = static_cast<int64_t>(step.action);
  mine.mutable_data_ptr<int64_t>()[1] = static_cast<int64_t>(step.unit);
  const at::Tensor other = tensors::empty({2}, at::kLong);
  Pending sent = ranks_.start_send(mine, (ranks_.rank() + 1) % world_size, kTag);
  ranks_.receive(other, before, kTag);
  sent.wait();
  const auto* numbers = other.const_data_ptr<int64_t>();
  const PassStep its{.action = static_cast<Action>(numbers[0]),
                     .unit = static_cast<std::size_t>(numbers[1])};
  if (its == step) return;
  throw std::runtime_error(fmt::format(
      "the ranks do not go the same way through the model: in {}, rank {} {}, where rank {} {}. {}",
      ranks_.activity(), ranks_.rank(), describe(step), before, describe(its), kAdvice));
}

// It may be alone: then nobody takes part in a comparison.
void OrderCheck::leave_order(const PassStep& step) {
  if (others_come(compare_in_store(step), timeout_)) {
    has_order_ = false;
    return;
  }
  const std::size_t place = steps_.size() - 1;
  throw std::runtime_error(fmt::format(
      "the ranks do not go the same way through the model: in {}, rank {} {}, where it {} in the "
      "pass before, and not all others did the same within {} s (parallel.fsdp.order_timeout). {}",
      ranks_.activity(), ranks_.rank(), describe(step),
      place < known_->size() ? describe((*known_)[place]) : "had come to the end",
      in_seconds(timeout_), kAdvice));
}

void OrderCheck::end() {
  next(Action::end, 0);
  known_passes_.add(*kind_, steps_);
  known_ = nullptr;
  has_order_ = false;
}

// Who comes first says what it does; the others compare with that. Returns the key it stands under.
std::string OrderCheck::compare_in_store(const PassStep& step) {
  const std::string key = fmt::format("order/{}/{}/{}", number_, passes_, steps_.size());
  const std::string mine = describe(step);
  const std::string own = fmt::format("{} (rank {})", mine, ranks_.rank());
  const auto said = ask_store<std::string>(
      ranks_.timeout(), [=](KeyValueStore& store) { return store.set_if_absent(key, own); });
  keys_.push_back(key);
  if (said.rfind(mine + " (rank ", 0) == 0) return key;
  throw std::runtime_error(fmt::format(
      "the ranks do not go the same way through the model: in {}, rank {} {}, where {}. {}",
      ranks_.activity(), ranks_.rank(), mine, said, kAdvice));
}

// The last to come forgets what was said before: nobody will ask for it again.
bool OrderCheck::others_come(const std::string& key, std::chrono::milliseconds timeout) {
  const std::string ranks = key + "/ranks";
  const std::string all = key + "/all";
  const auto wait = [=, world_size = ranks_.world_size(), keys = keys_](KeyValueStore& store) {
    if (store.add(ranks, 1) == world_size) {
      for (const auto& earlier : keys) {
        if (earlier != key) store.remove(earlier);
      }
      store.set(all, "come");
    }
    return store.get(all, timeout).has_value();
  };
  keys_ = {key, ranks, all};
  return ask_store<bool>(timeout + ranks_.timeout(), wait);
}

// Its operations never end when the process that serves it is stopped.
template <class Result>
Result OrderCheck::ask_store(std::chrono::milliseconds timeout,
                             std::function<Result(KeyValueStore&)> question) const {
  const auto answer = call_within<Result>(
      timeout,
      [store = ranks_.shared_store(), question = std::move(question)] { return question(*store); });
  if (answer) return *answer;
  throw CommunicationError(fmt::format(
      "the comparison of the ranks' ways through the model failed in {}: Timed out after {} s: the "
      "process that serves the ranks' store does not answer",
      ranks_.activity(), in_seconds(timeout)));
}

std::string OrderCheck::describe(const PassStep& step) const {
  if (step.action == Action::end) return "comes to the end of the pass";
  if (step.action == Action::begin) {
    switch (static_cast<PassKind>(step.unit)) {
      case PassKind::without_backward:
        return "begins a forward pass without gradients";
      case PassKind::backward_alone:
        return "begins a backward pass without a forward pass";
      case PassKind::training:
      case PassKind::accumulating:
        return "begins a forward pass with gradients";
    }
    throw std::logic_error("an unknown PassKind");
  }
  const std::string& name = units_.at(step.unit);
  const std::string unit = name.empty() ? "what lies outside of the units" : "unit " + name;
  switch (step.action) {
    case Action::use:
      return "comes to " + unit;
    case Action::reduce:
      return "reduces the gradients of " + unit;
    case Action::average:
      return "averages the gradients of " + unit;
    case Action::begin:
    case Action::end:
      break;
  }
  throw std::logic_error("an unknown Action");
}

}  // namespace phalanx::fsdp
