#include "trainer/parallel/fsdp/order_check.h"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <utility>

namespace phalanx::sharding {
namespace {

// Of the checks that this process has made: all ranks make theirs in the same order.
std::atomic<int64_t> numbers = 0;

}  // namespace

OrderCheck::OrderCheck(Ranks ranks, std::vector<std::string> units,
                       std::chrono::milliseconds timeout)
    : ranks_(std::move(ranks)),
      units_(std::move(units)),
      timeout_(timeout),
      number_(numbers.fetch_add(1)) {}

void OrderCheck::begin(PassKind kind) {
  ++passes_;
  kind_ = kind;
  steps_.clear();
}

void OrderCheck::next(Action action, std::size_t unit) {
  const Step step{.action = action, .unit = unit};
  const std::vector<Step>& known = known_[static_cast<std::size_t>(kind_)];
  const std::size_t place = steps_.size();
  steps_.push_back(step);
  if (place < known.size() && known[place] == step) return;
  compare(step, !known.empty());
}

void OrderCheck::end() {
  next(Action::end, 0);
  known_[static_cast<std::size_t>(kind_)] = steps_;
}

// Who comes first says what it does; the others compare with that.
void OrderCheck::compare(const Step& step, bool leaves_order) const {
  if (ranks_.is_alone()) return;
  const std::string key = fmt::format("order/{}/{}/{}", number_, passes_, steps_.size());
  const std::string mine = describe(step);
  const std::string said =
      ranks_.store().set_if_absent(key, fmt::format("{} (rank {})", mine, ranks_.rank()));
  if (said.rfind(mine + " (rank ", 0) != 0) {
    throw std::runtime_error(fmt::format(
        "the ranks do not go the same way through the model: in {}, rank {} {}, where {}. Every "
        "rank must call the same units in the same order: look for a branch that depends on the "
        "rank or on its data",
        ranks_.activity(), ranks_.rank(), mine, said));
  }
  if (leaves_order) wait_for_others(key, step);
}

void OrderCheck::wait_for_others(const std::string& key, const Step& step) const {
  KeyValueStore& store = ranks_.store();
  const std::string all = key + "/all";
  if (store.add(key + "/ranks", 1) == ranks_.world_size()) store.set(all, "come");
  if (store.get(all, timeout_)) return;
  const std::vector<Step>& known = known_[static_cast<std::size_t>(kind_)];
  const std::size_t place = steps_.size() - 1;
  throw std::runtime_error(fmt::format(
      "the ranks do not go the same way through the model: in {}, rank {} {}, where it {} in the "
      "pass before, and not all others did the same within {} s (parallel.fsdp.order_timeout). "
      "Every rank must call the same units in the same order: look for a branch that depends on "
      "the rank or on its data",
      ranks_.activity(), ranks_.rank(), describe(step),
      place < known.size() ? describe(known[place]) : "had come to the end",
      static_cast<double>(timeout_.count()) / 1000));
}

std::string OrderCheck::describe(const Step& step) const {
  if (step.action == Action::end) return "comes to the end of the pass";
  const std::string& name = units_.at(step.unit);
  const std::string unit = name.empty() ? "what lies outside of the units" : "unit " + name;
  switch (step.action) {
    case Action::use:
      return "comes to " + unit;
    case Action::reduce:
      return "reduces the gradients of " + unit;
    case Action::average:
      return "averages the gradients of " + unit;
    case Action::end:
      break;
  }
  throw std::logic_error("an unknown Action");
}

}  // namespace phalanx::sharding
