// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/init_from_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/parallel/rendezvous/backends.h"
#include "trainer/parallel/rendezvous/checked_backend.h"
#include "trainer/parallel/rendezvous/rendezvous.h"
#include "trainer/parallel/rendezvous/store_of_ranks.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/environment/init_method.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/ranks/failures/presence.h"
#include "trainer/ranks/stores/group_store.h"
#include "trainer/ranks/stores/key_value_store.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

constexpr auto kAbortPatience = std::chrono::seconds(3);

[[noreturn]] void refuse_silent_store(const Environment& environment) {
  throw CommunicationError(fmt::format(
      "rank {} could not join the others: {} {} has stopped answering", environment.rank,
      store_file(environment).empty() ? "the process that serves the ranks' store at"
                                      : "the file system of the ranks' store",
      place_of_ranks(environment)));
}

// Longer than all the waiting that has a limit of its own.
std::chrono::milliseconds limit_of(const JoinOptions& options) {
  return 3 * options.join_timeout + options.timeout + std::chrono::seconds(5);
}

Rendezvous meet_within(const Environment& environment, const JoinOptions& options) {
  auto met = call_within<Rendezvous>(limit_of(options),
                                     [=] { return meet(environment, options.join_timeout); });
  if (!met) refuse_silent_store(environment);
  return *std::move(met);
}

// Rank 0's variable counts: a rank that compares waits for all others to do so.
bool checks_of_all(const Ranks::Group& group, c10d::Store& store, bool own) {
  constexpr const char* kKey = "checks_collectives";
  if (group.rank == 0) store.set(kKey, std::string(own ? "1" : "0"));
  return store.get_to_str(kKey) == "1";
}

void attach(Ranks::Group& group, const Rendezvous& rendezvous, at::Device device, bool checks) {
  try {
    group.attach(rendezvous.store,
                 process_group_maker(device, rendezvous.address,
                                     checks_of_all(group, *rendezvous.store, checks)));
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("rank {} could not connect with the other ranks: {}",
                                         group.rank, plain_gloo_text(error_text(error))));
  }
}

// Ascending, whatever order the launcher has given them in.
std::vector<int64_t> local_ranks_on_cores(const Rendezvous& rendezvous) {
  std::vector<int64_t> local_ranks;
  for (const int64_t rank : rendezvous.ranks_on_cores) {
    local_ranks.push_back(rendezvous.local_ranks[static_cast<size_t>(rank)]);
  }
  std::ranges::sort(local_ranks);
  return local_ranks;
}

// The local rank and world size that a launcher has left open.
Environment with_local_rank(Environment environment, const Rendezvous& rendezvous) {
  const auto rank = static_cast<size_t>(environment.rank);
  environment.local_rank = rendezvous.local_ranks[rank];
  if (environment.local_world_size == kFromHosts) {
    environment.local_world_size = std::ranges::count(rendezvous.hosts, rendezvous.hosts[rank]);
  }
  return environment;
}

}  // namespace

World::World(Ranks ranks, at::Device device, std::unique_ptr<KeyValueStore> job_store,
             int64_t restart_count, std::vector<int64_t> local_ranks_on_cores)
    : ranks_(std::move(ranks)),
      mesh_({{.name = std::string(Mesh::kData), .size = ranks_.world_size()}}),
      device_(device),
      job_store_(std::move(job_store)),
      restart_count_(restart_count),
      local_ranks_on_cores_(std::move(local_ranks_on_cores)) {}
World::World(World&&) noexcept = default;
World::~World() {
  if (!job_store_) return;  // moved from: somebody else's now
  end_presence();
  try {
    // NCCL can wait here for what will not come.
    call_within<bool>(kAbortPatience, [ranks = ranks_] {
      ranks.abort();
      return true;
    });
  } catch (const std::exception&) {
    // It ends after an error, which has been told, or after close.
  }
}

void World::close() {
  ranks_.set_activity("closing");
  ranks_.barrier();
  end_presence();
  ranks_.close();
}

void World::end_presence() const {
  const auto& presence = ranks_.group().presence;
  if (presence) presence->end(ranks_.shared_store());
}

World init_from_env(const JoinOptions& options) {
  return init_from_env(read_environment(), options);
}

World init_from_env(const Environment& given, const JoinOptions& options) {
  if (options.numerics) {
    prepare_numerics(*options.numerics);
    use_numerics(*options.numerics);
  }
  auto group = std::make_shared<Ranks::Group>();
  group->timeout = options.timeout;
  if (given.world_size == 1) {
    const at::Device device = device_of_rank(given, options.device);
    auto job_store = given.agent_store
                         ? make_key_value_store(open_job_store(given, options.join_timeout))
                         : make_local_store();
    return World(Ranks(std::move(group)), device, std::move(job_store), given.restart_count);
  }
  const bool checks = checks_collectives();
  const bool knows_device = given.local_rank != kFromHosts;
  // What is wrong with it is said before anybody waits.
  std::optional<at::Device> device;
  if (knows_device) device = device_of_rank(given, options.device);
  const Rendezvous rendezvous = meet_within(given, options);
  const Environment environment = with_local_rank(given, rendezvous);
  if (!device) device = device_of_rank(environment, options.device);
  group->rank = environment.rank;
  group->world_size = environment.world_size;
  group->local_rank = environment.local_rank;
  group->local_world_size = environment.local_world_size;
  group->hosts = rendezvous.hosts;
  group->address = rendezvous.address;
  const bool serves_store = !environment.agent_store && store_file(environment).empty();
  const auto attached = call_within<bool>(limit_of(options), [=] {
    attach(*group, rendezvous, *device, checks);
    group->presence =
        std::make_shared<Presence>(PlaceInRollCall{.rank = environment.rank,
                                                   .hosts = rendezvous.host_names,
                                                   .rank_0_serves_store = serves_store,
                                                   .activity = group->activity},
                                   group->another_line());
    return true;
  });
  if (!attached) refuse_silent_store(environment);
  return World(Ranks(group), *device, make_key_value_store(rendezvous.job_store),
               given.restart_count, local_ranks_on_cores(rendezvous));
}

}  // namespace phalanx
