// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous/backends.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "trainer/cuda/load.h"
#include "trainer/parallel/rendezvous/address_book.h"
#include "trainer/parallel/rendezvous/checked_backend.h"
#include "trainer/ranks/collectives/backend_decorator.h"

namespace phalanx {
namespace {

using Gloo = c10d::ProcessGroupGloo;

// Connections of every rank with every other take time and open files at the start, and few are
// used. Beyond this size ranks connect when they first speak; a rank that is gone by then is
// noticed later.
constexpr int64_t kLargestFullMesh = 64;

bool connects_lazily(int64_t world_size) {
  return c10d::getDefaultGlooLazyInit() || world_size > kLargestFullMesh;
}

// Where a rank listens: at its address, or at the interfaces that the user has chosen.
std::vector<std::shared_ptr<gloo::transport::Device>> devices(const std::string& address,
                                                              bool lazily) {
  if (!address.empty()) return {Gloo::createDeviceForHostname(address, lazily)};
  std::vector<std::shared_ptr<gloo::transport::Device>> chosen;
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  if (names == nullptr) return {Gloo::createDefaultDevice(lazily)};
  for (const auto name : std::views::split(std::string_view(names), ',')) {
    chosen.push_back(Gloo::createDeviceForInterface(std::string(name.begin(), name.end()), lazily));
  }
  return chosen;
}

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                                    int64_t rank, int64_t world_size,
                                                    std::chrono::milliseconds timeout,
                                                    const std::string& address) {
  const auto options = Gloo::Options::create(timeout);
  options->devices = devices(address, connects_lazily(world_size));
  return c10::make_intrusive<Gloo>(make_address_book(std::move(store), world_size),
                                   static_cast<int>(rank), static_cast<int>(world_size), options);
}

// For tensors on GPUs in place of NCCL, which refuses some hosts: two ranks on one GPU, say.
bool takes_gloo_on_gpus() {
  const char* const backend = std::getenv("PHALANX_GPU_BACKEND");
  return backend != nullptr && std::string_view(backend) == "gloo";
}

}  // namespace

MakeProcessGroup process_group_maker(at::Device device, const std::string& address, bool checks) {
  using BackendType = c10d::ProcessGroup::BackendType;
  return [=](const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size,
             std::chrono::milliseconds timeout) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, static_cast<int>(rank),
                                                         static_cast<int>(world_size));
    const auto with_checks = [&](c10::intrusive_ptr<c10d::Backend> backend, const char* name) {
      if (!checks) return backend;
      auto keys = c10::make_intrusive<c10d::PrefixStore>(name, store);
      return checked(std::move(backend),
                     make_gloo_backend(std::move(keys), rank, world_size, timeout, address));
    };
    group->setBackend(
        c10::kCPU, BackendType::GLOO,
        with_checks(decorated(make_gloo_backend(store, rank, world_size, timeout, address)),
                    "checks"));
    group->setDefaultBackend(BackendType::GLOO);
    if (device.is_cuda() && takes_gloo_on_gpus()) {
      group->setBackend(c10::kCUDA, BackendType::GLOO, group->getBackend(c10::kCPU));
    } else if (device.is_cuda()) {
      group->setBoundDeviceId(device);  // else NCCL guesses it from the rank
      // Keys apart from Gloo's, and a connection of its own: its threads may wait in theirs.
      auto nccl_store = c10::make_intrusive<c10d::PrefixStore>("nccl", store->clone());
      auto nccl = load_cuda().make_nccl_backend(std::move(nccl_store), rank, world_size, timeout);
      nccl->setBoundDeviceId(device);
      group->setBackend(c10::kCUDA, BackendType::NCCL,
                        with_checks(std::move(nccl), "checks_of_nccl"));
      group->setDefaultBackend(BackendType::NCCL);
    }
    return group;
  };
}

}  // namespace phalanx
