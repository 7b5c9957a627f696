// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/earlier_attempt.h"

#include <fmt/format.h>

#include <vector>

#include "trainer/metrics/console.h"
#include "trainer/run/run_lock.h"
#include "trainer/run/starts.h"

namespace phalanx {

using std::chrono::milliseconds;

BatchJob job_of_last_start(const std::filesystem::path& exp_dir) {
  const std::vector<PastStart> starts = past_starts(exp_dir);
  return starts.empty() ? BatchJob() : starts.back().job;
}

milliseconds patience_with_earlier_attempt(milliseconds timeout) { return timeout * 3 / 2; }

void await_earlier_attempt(const std::filesystem::path& exp_dir, const BatchJob& job,
                           milliseconds timeout, const std::function<void()>& meanwhile) {
  if (job.restarts == 0) return;
  const BatchJob last = job_of_last_start(exp_dir);
  if (last.name != job.name || last.restarts >= job.restarts) return;
  const auto holder = holder_of_run(exp_dir);
  if (!holder) return;
  Console::standard().line(
      fmt::format("waiting for the end of an earlier attempt of {}, {}, which still trains in {}",
                  job.name, *holder, exp_dir.string()));
  require_free_run(exp_dir, patience_with_earlier_attempt(timeout), meanwhile);
}

}  // namespace phalanx
