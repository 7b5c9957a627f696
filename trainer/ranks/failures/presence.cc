// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/presence.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#include "trainer/ranks/collectives/activity.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

constexpr auto kOneWait = std::chrono::hours(1);
// Longer than a roll call takes.
constexpr auto kUntilVerdict = std::chrono::seconds(10);
// A store that does not answer must not hold up the end of the rank.
constexpr auto kUntilEnd = std::chrono::seconds(1);

}  // namespace

struct Presence::Shared {
  explicit Shared(PlaceInRollCall own) : place(std::move(own)) {}

  const PlaceInRollCall place;
  std::mutex mutex;
  std::optional<std::string> verdict;
};

Presence::Presence(PlaceInRollCall place, std::shared_ptr<KeyValueStore> line)
    : shared_(std::make_shared<Shared>(std::move(place))) {
  std::packaged_task<void()> task(
      [shared = shared_, line = std::move(line)] { answer(shared, line); });
  ended_ = task.get_future();
  thread_ = std::thread(std::move(task));
}

Presence::~Presence() {
  if (thread_.joinable()) thread_.detach();
}

const PlaceInRollCall& Presence::place() const { return shared_->place; }

SignOfLife Presence::sign() const {
  const Activity& activity = *shared_->place.activity;
  return {.operations = activity.operations(), .activity = activity.shared().text()};
}

std::optional<std::string> Presence::verdict() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->verdict;
}

void Presence::end(const std::shared_ptr<KeyValueStore>& store) {
  if (!thread_.joinable()) return;
  try {
    call_within<bool>(kUntilEnd, [store, key = roll_call::call_key(shared_->place.rank)] {
      store->set(key, roll_call::kOver);
      return true;
    });
  } catch (const std::exception&) {
    // The store is gone: so is what the thread waits for.
  }
  if (ended_.wait_for(kUntilEnd) == std::future_status::ready) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Presence::answer(const std::shared_ptr<Shared>& shared,
                      const std::shared_ptr<KeyValueStore>& line) {
  const PlaceInRollCall& place = shared->place;
  try {
    std::optional<std::string> call;
    while (!call) call = line->get(roll_call::call_key(place.rank), kOneWait);
    if (*call == roll_call::kOver) return;
    line->set(roll_call::answer_key(place.rank),
              roll_call::to_text({.operations = place.activity->operations(),
                                  .activity = place.activity->shared().text()}));
    auto verdict = line->get(roll_call::kVerdict, kUntilVerdict);
    if (!verdict) return;
    {
      const std::lock_guard lock(shared->mutex);
      shared->verdict = std::move(verdict);
    }
    line->add(roll_call::kHeard, 1);
  } catch (const std::exception&) {
    // The store is gone, and the run with it.
  }
}

}  // namespace phalanx
