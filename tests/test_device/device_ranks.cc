// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/device_ranks.h"

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "tests/test_device/device_backend.h"
#include "tests/test_device/test_device.h"
#include "tests/trainer/parallel/in_ranks.h"
#include "trainer/parallel/rendezvous/backends.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/stores/group_store.h"

namespace phalanx::test_device {
namespace {

constexpr auto kTimeout = std::chrono::minutes(2);

// As process_group_maker makes them for GPUs: with a backend of their own beside Gloo.
MakeProcessGroup maker_for_device() {
  return [](const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size,
            std::chrono::milliseconds timeout) {
    const MakeProcessGroup make_gloo = process_group_maker(at::kCPU, "127.0.0.1");
    auto group = make_gloo(store, rank, world_size, timeout);
    const auto carriers = c10::make_intrusive<c10d::PrefixStore>("test_device", store->clone());
    auto carrier = make_gloo(carriers, rank, world_size, timeout)->getBackend(at::kCPU);
    group->setBackend(kType, c10d::ProcessGroup::BackendType::CUSTOM,
                      make_device_backend(std::move(carrier)));
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
    return group;
  };
}

// The same ranks, with connections of their own.
Ranks ranks_on_devices(const Ranks& joined) {
  auto group = std::make_shared<Ranks::Group>();
  group->rank = joined.rank();
  group->world_size = joined.world_size();
  group->local_rank = joined.local_rank();
  group->local_world_size = joined.local_world_size();
  group->hosts = joined.group().hosts;
  group->timeout = kTimeout;
  group->name = "devices";
  group->attach(joined.group().store, maker_for_device());
  return Ranks(std::move(group));
}

}  // namespace

RankOutcome in_device_ranks(int64_t processes, const std::function<void(Worlds&)>& body) {
  install();
  return in_ranks(processes,
                  [&](World& joined) {
                    const int index = static_cast<int>(joined.ranks().rank());
                    set_current_device(index);
                    Worlds worlds{
                        World(ranks_on_devices(joined.ranks()), device(index), make_local_store()),
                        joined};
                    body(worlds);
                    worlds.on_device.close();
                  },
                  {.device = DeviceChoice::cpu});
}

}  // namespace phalanx::test_device
