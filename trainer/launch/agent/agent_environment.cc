// SPDX-License-Identifier: Apache-2.0
#include "trainer/launch/agent/agent_environment.h"

#include <cstdlib>
#include <string>

#include "trainer/ranks/environment/launch_job.h"

namespace phalanx {
namespace {

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
void set(const char* name, int64_t value) { set(name, std::to_string(value)); }

}  // namespace

NodePlace place_in(const Order& order, int64_t group_rank) {
  NodePlace place{.group_rank = group_rank,
                  .group_world_size = std::ssize(order.members),
                  .world_size = 0,
                  .restart_count = order.round - 1};
  for (int64_t node = 0; node < place.group_world_size; ++node) {
    const int64_t ranks = order.members[static_cast<size_t>(node)].ranks;
    if (node < group_rank) place.first_rank += ranks;
    place.world_size += ranks;
  }
  return place;
}

void export_agent_variables(const AgentSettings& settings, const NodePlace& place,
                            const Environment& environment,
                            const std::filesystem::path& error_file) {
  set("GROUP_RANK", place.group_rank);
  set("GROUP_WORLD_SIZE", place.group_world_size);
  set("ROLE_NAME", settings.role);
  set("ROLE_RANK", environment.rank);
  set("ROLE_WORLD_SIZE", environment.world_size);
  set("TORCHELASTIC_RUN_ID", settings.run_id);
  set("TORCHELASTIC_RESTART_COUNT", place.restart_count);
  set("TORCHELASTIC_MAX_RESTARTS", settings.max_restarts);
  set("TORCHELASTIC_USE_AGENT_STORE", std::string("True"));
  set(kLaunchJobVariable, place.job);
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1", 0);
  if (!error_file.empty()) set("TORCHELASTIC_ERROR_FILE", error_file.string());
}

}  // namespace phalanx
