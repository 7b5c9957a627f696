// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/timeline.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace phalanx::test_device {
namespace {

using Lock = std::lock_guard<std::mutex>;

// What is to be called at some time, in the order in which it came.
class Calls {
 public:
  void add(Moment moment, std::function<void()> call) {
    const Lock lock(mutex_);
    calls_.push_back({moment, std::move(call)});
  }

  void run(const Clock& clock) {
    // Held while they run: who needs a call that another thread makes waits for it.
    const std::lock_guard running(running_);
    while (auto call = take(clock)) (*call)();
  }

 private:
  struct Call {
    Moment moment;
    std::function<void()> call;
  };

  std::optional<std::function<void()>> take(const Clock& clock) {
    const Lock lock(mutex_);
    const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const Call& call) {
      return call.moment.number <= clock.of(call.moment.stream);
    });
    if (found == calls_.end()) return {};
    std::function<void()> call = std::move(found->call);
    calls_.erase(found);
    return call;
  }

  std::recursive_mutex running_;
  std::mutex mutex_;
  std::vector<Call> calls_;
};

struct Timeline {
  std::mutex mutex;
  std::vector<Clock> streams;
  Clock host;
  Calls late_work;
  Calls host_writes;

  Clock& stream(uint32_t number) {
    if (number >= streams.size()) streams.resize(number + 1);
    return streams[number];
  }
};

// Never destroyed: tensors in static variables free their memory when the process ends.
Timeline& timeline() {
  static auto* const timeline = new Timeline;
  return *timeline;
}

}  // namespace

Moment enqueue(uint32_t stream) {
  Timeline& time = timeline();
  const Lock lock(time.mutex);
  Clock& clock = time.stream(stream);
  clock.join(time.host);
  const uint64_t number = clock.of(stream) + 1;
  clock.raise(stream, number);
  return {stream, number};
}

Clock clock_of(uint32_t stream) {
  Timeline& time = timeline();
  const Lock lock(time.mutex);
  return time.stream(stream);
}

Clock clock_of_host() {
  Timeline& time = timeline();
  const Lock lock(time.mutex);
  return time.host;
}

Clock all_enqueued() {
  Timeline& time = timeline();
  const Lock lock(time.mutex);
  Clock all;
  for (uint32_t i = 0; i < time.streams.size(); ++i) all.raise(i, time.streams[i].of(i));
  return all;
}

void make_stream_wait(uint32_t stream, const Clock& clock) {
  Timeline& time = timeline();
  const Lock lock(time.mutex);
  time.stream(stream).join(clock);
}

void make_host_wait(const Clock& clock) {
  finish_late_work(clock);
  {
    const Lock lock(timeline().mutex);
    timeline().host.join(clock);
  }
  carry_out_host_writes(clock);
}

void add_late_work(Moment moment, std::function<void()> finish) {
  timeline().late_work.add(moment, std::move(finish));
}

void finish_late_work(const Clock& clock) { timeline().late_work.run(clock); }

void add_host_write(Moment moment, std::function<void()> write) {
  timeline().host_writes.add(moment, std::move(write));
}

void carry_out_host_writes(const Clock& clock) { timeline().host_writes.run(clock); }

}  // namespace phalanx::test_device
