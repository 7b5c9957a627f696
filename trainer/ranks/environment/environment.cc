// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/environment.h"

#include <cstdlib>
#include <limits>
#include <span>

#include "trainer/base/user_error.h"
#include "trainer/ranks/environment/known_launchers.h"

namespace phalanx {
namespace {

constexpr int64_t kMostRestarts = std::numeric_limits<int32_t>::max();

const char* lookup_in_process(const char* name) { return std::getenv(name); }

void require_below(const char* what, int64_t value, const char* of, int64_t bound) {
  if (value < bound) return;
  refuse_variables(std::string(what) + " is " + std::to_string(value) + ", but " + of + " is " +
                   std::to_string(bound) + ": ranks count from 0");
}

void check(const Environment& place) {
  require_below("RANK", place.rank, "WORLD_SIZE", place.world_size);
  if (place.local_world_size == kFromHosts) return;
  require_below("LOCAL_RANK", place.local_rank, "LOCAL_WORLD_SIZE", place.local_world_size);
  if (place.local_world_size <= place.world_size) return;
  refuse_variables("LOCAL_WORLD_SIZE is " + std::to_string(place.local_world_size) +
                   ", more than WORLD_SIZE, which is " + std::to_string(place.world_size));
}

// An agent counts from 0 in each attempt of its job, and its store begins anew with it. The larger
// of both counts would be the same for its first attempts, which would find each other's keys.
int64_t restarts(const Variables& variables, const VariableLookup& lookup) {
  const auto of_agent = variables.optional_number("TORCHELASTIC_RESTART_COUNT", 0, kMostRestarts);
  return of_agent ? *of_agent : batch_job(lookup).restarts;
}

Environment place_by(const KnownLauncher& launcher, const Variables& variables,
                     const VariableLookup& lookup) {
  Environment place = launcher.place(variables);
  check(place);
  place.launcher = launcher.name;
  place.restart_count = restarts(variables, lookup);
  return place;
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

}  // namespace

std::optional<Environment> find_environment(const VariableLookup& lookup,
                                            std::string_view launcher) {
  const Variables variables(lookup);
  for (const KnownLauncher& known : known_launchers()) {
    const bool is_forced = known.name == launcher;
    const bool is_asked = launcher.empty() && known.has_started(variables);
    if (!is_forced && !is_asked) continue;
    if (is_asked && known.refuse_leftovers != nullptr) known.refuse_leftovers(variables);
    return place_by(known, variables, lookup);
  }
  return std::nullopt;
}

std::optional<Environment> find_environment(std::string_view launcher) {
  return find_environment(lookup_in_process, launcher);
}

Environment read_environment() { return find_environment().value_or(Environment{}); }

BatchJob batch_job(const VariableLookup& lookup) {
  const Variables variables(lookup);
  const std::string_view job = variables.text("SLURM_JOB_ID");
  if (job.empty()) return {};
  return {
      .name = "slurm " + std::string(job),
      .restarts = variables.optional_number("SLURM_RESTART_COUNT", 0, kMostRestarts).value_or(0)};
}

BatchJob batch_job() { return batch_job(lookup_in_process); }

void export_environment(const Environment& environment) {
  set("RANK", std::to_string(environment.rank));
  set("WORLD_SIZE", std::to_string(environment.world_size));
  set("LOCAL_RANK", std::to_string(environment.local_rank));
  set("LOCAL_WORLD_SIZE", std::to_string(environment.local_world_size));
  set("MASTER_ADDR", environment.master_addr);
  set("MASTER_PORT", std::to_string(environment.master_port));
}

}  // namespace phalanx
