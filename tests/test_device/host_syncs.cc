// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/host_syncs.h"

#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "tests/test_device/calls.h"
#include "tests/test_device/timeline.h"

namespace phalanx::test_device {
namespace {

constexpr int kMostQueries = 100000;

struct Log {
  std::mutex mutex;
  std::vector<HostSync> syncs;
  std::optional<Clock> step_began;  // none: nothing counts as over by itself
  int queries = 0;                  // in vain, one after the other

  // What the host knows of, with what was enqueued before this step.
  Clock known_with(Clock host) const {
    if (step_began) host.join(*step_began);
    return host;
  }
};

Log& log() {
  static Log log;
  return log;
}

}  // namespace

SyncCount::SyncCount() {
  const std::lock_guard lock(log().mutex);
  log().step_began = all_enqueued();
  first_ = log().syncs.size();
}

std::vector<HostSync> SyncCount::all() const {
  const std::lock_guard lock(log().mutex);
  return {log().syncs.begin() + static_cast<std::ptrdiff_t>(first_), log().syncs.end()};
}

std::map<std::string, int64_t> SyncCount::by_reason() const {
  std::map<std::string, int64_t> counts;
  for (const HostSync& sync : all()) {
    if (sync.drains()) ++counts[sync.reason];
  }
  return counts;
}

int64_t SyncCount::drains() const {
  int64_t count = 0;
  for (const auto& [reason, times] : by_reason()) count += times;
  return count;
}

std::string describe_drains(const std::vector<HostSync>& syncs) {
  std::string text;
  for (const HostSync& sync : syncs) {
    if (sync.drains()) text += "\n  " + sync.reason + " in " + sync.calls;
  }
  return text;
}

void synchronize(const std::string& reason, const Clock& clock) {
  const Clock host = clock_of_host();
  const Clock all = all_enqueued();
  {
    const std::lock_guard lock(log().mutex);
    const Clock known = log().known_with(host);
    HostSync sync{.reason = reason,
                  .of_this_step = clock.beyond(known),
                  .of_before = clock.beyond(host) - clock.beyond(known),
                  .queued_behind = all.beyond(clock)};
    if (sync.drains()) sync.calls = calls_of_phalanx();  // a tenth of a second
    log().syncs.push_back(std::move(sync));
    log().queries = 0;
  }
  make_host_wait(clock);
}

bool is_over(const Clock& clock) {
  {
    const std::lock_guard lock(log().mutex);
    if (log().step_began && clock.beyond(log().known_with(clock_of_host())) > 0) {
      if (++log().queries < kMostQueries) return false;
      throw std::runtime_error("asks again and again for the end of what nobody waits for");
    }
    log().queries = 0;
  }
  make_host_wait(clock);
  return true;
}

}  // namespace phalanx::test_device
