// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ranks_of_store.h"

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "trainer/host/local_address.h"
#include "trainer/parallel/rendezvous/backends.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {

Ranks ranks_of_store(const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size,
                     std::chrono::milliseconds timeout) {
  auto group = std::make_shared<Ranks::Group>();
  group->rank = rank;
  group->world_size = world_size;
  group->hosts.assign(static_cast<size_t>(world_size), 0);
  group->find_place_on_host();
  group->timeout = timeout;
  group->as_c10d = true;
  group->address = kLoopbackAddress;
  try {
    group->attach(store, process_group_maker(at::kCPU, kLoopbackAddress));
  } catch (const std::exception& error) {
    throw CommunicationError(fmt::format("rank {} could not connect with the other ranks: {}", rank,
                                         plain_gloo_text(error_text(error))));
  }
  return Ranks(std::move(group));
}

}  // namespace phalanx
