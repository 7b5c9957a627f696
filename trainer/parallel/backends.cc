// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/backends.h"

#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "trainer/cuda/load.h"
#include "trainer/ranks/backend_decorator.h"

namespace phalanx {
namespace {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                                    int64_t rank, int64_t world_size,
                                                    std::chrono::milliseconds timeout,
                                                    const std::string& address) {
  using Gloo = c10d::ProcessGroupGloo;
  c10::intrusive_ptr<Gloo::Options> options;
  if (address.empty()) {
    options = Gloo::Options::create_default(timeout);
  } else {
    options = Gloo::Options::create(timeout);
    options->devices.push_back(Gloo::createDeviceForHostname(address));
  }
  return c10::make_intrusive<Gloo>(std::move(store), static_cast<int>(rank),
                                   static_cast<int>(world_size), std::move(options));
}

}  // namespace

MakeProcessGroup process_group_maker(at::Device device, const std::string& address,
                                     std::chrono::milliseconds timeout) {
  using BackendType = c10d::ProcessGroup::BackendType;
  return [=](const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, static_cast<int>(rank),
                                                         static_cast<int>(world_size));
    group->setBackend(c10::kCPU, BackendType::GLOO,
                      decorated(make_gloo_backend(store, rank, world_size, timeout, address)));
    group->setDefaultBackend(BackendType::GLOO);
    if (device.is_cuda()) {
      group->setBoundDeviceId(device);  // else NCCL guesses it from the rank
      // Keys apart from Gloo's, and a connection of its own: its threads may wait in theirs.
      auto nccl_store = c10::make_intrusive<c10d::PrefixStore>("nccl", store->clone());
      group->setBackend(
          c10::kCUDA, BackendType::NCCL,
          load_cuda().make_nccl_backend(std::move(nccl_store), rank, world_size, timeout));
      group->setDefaultBackend(BackendType::NCCL);
    }
    return group;
  };
}

}  // namespace phalanx
