// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/init_from_env.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/parallel/backends.h"
#include "trainer/parallel/rendezvous.h"
#include "trainer/ranks/call_within.h"
#include "trainer/ranks/group_store.h"
#include "trainer/ranks/key_value_store.h"
#include "trainer/ranks/ranks_group.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

constexpr auto kAbortPatience = std::chrono::seconds(3);

// Connects the group; returns the job's store.
StorePointer meet_and_attach(Ranks::Group& group, const Environment& environment, at::Device device,
                             const JoinOptions& options) {
  const Rendezvous rendezvous = meet(environment, options.join_timeout);
  group.hosts = rendezvous.hosts;
  try {
    group.attach(rendezvous.store,
                 process_group_maker(device, rendezvous.one_machine, options.timeout));
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("rank {} could not connect with the other ranks: {}",
                                         environment.rank, error_text(error)));
  }
  return rendezvous.job_store;
}

StorePointer join(const std::shared_ptr<Ranks::Group>& group, const Environment& environment,
                  at::Device device, const JoinOptions& options) {
  // Longer than all the waiting that has a limit of its own.
  const auto limit = 3 * options.join_timeout + options.timeout + std::chrono::seconds(5);
  const auto job_store = call_within<StorePointer>(
      limit, [=] { return meet_and_attach(*group, environment, device, options); });
  if (job_store) return *job_store;
  throw CommunicationError(fmt::format(
      "rank {} could not join the others: the process that serves the ranks' store at {}:{} has "
      "stopped answering",
      environment.rank, environment.master_addr, environment.master_port));
}

}  // namespace

World::World(Ranks ranks, at::Device device, std::unique_ptr<KeyValueStore> job_store)
    : ranks_(std::move(ranks)), device_(device), job_store_(std::move(job_store)) {}
World::World(World&&) noexcept = default;
World::~World() {
  if (!job_store_) return;  // moved from: somebody else's now
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
  ranks_.close();
}

World init_from_env(const JoinOptions& options) {
  return init_from_env(read_environment(), options);
}

World init_from_env(const Environment& environment, const JoinOptions& options) {
  auto group = std::make_shared<Ranks::Group>();
  group->rank = environment.rank;
  group->world_size = environment.world_size;
  group->local_rank = environment.local_rank;
  group->local_world_size = environment.local_world_size;
  group->timeout = options.timeout;
  const at::Device device = device_of_rank(environment, options.device);
  if (environment.world_size == 1) {
    return World(Ranks(std::move(group)), device, make_local_store());
  }
  return World(Ranks(group), device,
               make_key_value_store(join(group, environment, device, options)));
}

}  // namespace phalanx
