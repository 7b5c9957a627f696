// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/backends.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "trainer/base/host.h"
#include "trainer/base/user_error.h"
#include "trainer/cuda/load.h"
#include "trainer/ranks/backend_decorator.h"

namespace phalanx {
namespace {

constexpr const char* kInterfaces = "GLOO_SOCKET_IFNAME";

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(ip4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address.sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }
  return false;
}

// Gloo would take loopback for a host that does not know its own name, with a warning that nobody
// reads: the other hosts' ranks then wait for each other in vain.
void require_reachable_host() {
  const std::string name = host_name();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, ::freeaddrinfo);
  if (error == 0 && !is_loopback(*found->ai_addr)) return;
  throw UserError(fmt::format(
      "this host's name, '{}', {}, so ranks on other hosts cannot reach it. Set {} to the network "
      "interface to use (`ip address` lists them)",
      name, error != 0 ? ::gai_strerror(error) : "stands for its loopback address", kInterfaces));
}

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(c10::intrusive_ptr<c10d::Store> store,
                                                    int64_t rank, int64_t world_size,
                                                    std::chrono::milliseconds timeout,
                                                    bool one_host) {
  using Gloo = c10d::ProcessGroupGloo;
  c10::intrusive_ptr<Gloo::Options> options;
  if (std::getenv(kInterfaces) != nullptr) {
    options = Gloo::Options::create_default(timeout);
  } else if (one_host) {
    options = Gloo::Options::create(timeout);
    options->devices.push_back(Gloo::createDeviceForHostname("127.0.0.1"));
  } else {
    require_reachable_host();
    options = Gloo::Options::create_default(timeout);
  }
  return c10::make_intrusive<Gloo>(std::move(store), static_cast<int>(rank),
                                   static_cast<int>(world_size), std::move(options));
}

}  // namespace

MakeProcessGroup process_group_maker(at::Device device, bool one_host,
                                     std::chrono::milliseconds timeout) {
  using BackendType = c10d::ProcessGroup::BackendType;
  return [=](const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, static_cast<int>(rank),
                                                         static_cast<int>(world_size));
    group->setBackend(c10::kCPU, BackendType::GLOO,
                      decorated(make_gloo_backend(store, rank, world_size, timeout, one_host)));
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
