#include "trainer/parallel/init_from_env.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/core/error_text.h"
#include "trainer/core/ranks_group.h"
#include "trainer/parallel/gloo.h"
#include "trainer/parallel/rendezvous.h"

namespace phalanx {
namespace {

Ranks::Group::MakeProcessGroup process_group_maker(bool one_host,
                                                   std::chrono::milliseconds timeout) {
  return [=](c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t world_size) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, static_cast<int>(rank),
                                                         static_cast<int>(world_size));
    constexpr auto kType = c10d::ProcessGroup::GLOO;
    group->setBackend(c10::kCPU, kType,
                      make_gloo_backend(std::move(store), rank, world_size, timeout, one_host));
    group->setDefaultBackend(kType);
    return group;
  };
}

}  // namespace

World::World(Ranks ranks, at::Device device, std::unique_ptr<KeyValueStore> job_store)
    : ranks_(std::move(ranks)), device_(device), job_store_(std::move(job_store)) {}
World::World(World&&) noexcept = default;
World::~World() {
  if (job_store_) ranks_.close();  // moved from: somebody else's now
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
  const at::Device device(c10::kCPU);
  if (environment.world_size == 1) {
    return World(Ranks(std::move(group)), device, make_local_store());
  }
  const Rendezvous rendezvous = meet(environment, options.join_timeout);
  try {
    group->attach(rendezvous.store, process_group_maker(rendezvous.one_host, options.timeout));
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("rank {} could not connect with the other ranks: {}",
                                         environment.rank, error_text(error)));
  }
  return World(Ranks(std::move(group)), device, make_key_value_store(rendezvous.job_store));
}

}  // namespace phalanx
