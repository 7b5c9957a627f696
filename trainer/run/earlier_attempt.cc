// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/earlier_attempt.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "trainer/metrics/console.h"
#include "trainer/run/json_lines.h"
#include "trainer/run/run_folder.h"
#include "trainer/run/run_lock.h"

namespace phalanx {

using std::chrono::milliseconds;

BatchJob job_of_last_start(const std::filesystem::path& exp_dir) {
  const std::vector<std::string> starts = lines_of(exp_dir / kStartsFile);
  if (starts.empty()) return {};
  const auto json = nlohmann::json::parse(starts.back(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  // Before there was "job_restarts", "restart" was the job's, where it had no launcher of its own.
  const int64_t restart = json.value("restart", int64_t{0});
  return {.name = json.value("job", ""), .restarts = json.value("job_restarts", restart)};
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
