// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous/store_of_ranks.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/host/host.h"
#include "trainer/host/listener.h"
#include "trainer/host/local_address.h"
#include "trainer/ranks/environment/init_method.h"
#include "trainer/ranks/stores/tcp_store.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using Milliseconds = std::chrono::milliseconds;
using StorePointer = c10::intrusive_ptr<c10d::Store>;

constexpr uint16_t kAnyPort = 1;  // A route does not depend on it.

double seconds(Milliseconds time) { return std::chrono::duration<double>(time).count(); }

bool serves_store(const Environment& environment) {
  return environment.rank == 0 && !environment.agent_store;
}

// Where this rank finds the store. Rank 0 may be told no address: it serves at all.
StorePlace place_of_store(const Environment& environment) {
  return {.host = environment.master_addr.empty() ? kLoopbackAddress : environment.master_addr,
          .port = environment.master_port,
          .setting = "MASTER_ADDR"};
}

[[noreturn]] void refuse_store(const Environment& environment, Milliseconds timeout,
                               const std::exception& error) {
  const std::string place = place_of_ranks(environment);
  if (serves_store(environment)) {
    throw UserError(fmt::format(
        "rank 0 cannot serve the ranks' store at {} (MASTER_ADDR, MASTER_PORT): {}. Choose a port "
        "that is free",
        place, error_text(error)));
  }
  throw UserError(fmt::format(
      "rank {} found no store at {} (MASTER_ADDR, MASTER_PORT) in {} s: {}. Is {} running, and is "
      "the address right?",
      environment.rank, place, seconds(timeout), error_text(error),
      environment.agent_store ? "the launcher" : "rank 0"));
}

// No other host can need the store then, and the same text means this host to every rank.
bool suffices_on_loopback(const Environment& environment) {
  const std::string& host = environment.master_addr;
  return environment.local_world_size == environment.world_size &&
         (host == "localhost" || is_loopback(host));
}

// The socket for rank 0's store, which c10d closes. Without one c10d listens at all addresses.
std::optional<int> listening_socket(const Environment& environment) {
  if (environment.listen_fd) return environment.listen_fd;
  if (!suffices_on_loopback(environment)) return std::nullopt;
  auto listener = listen_at(environment.master_addr, environment.master_port);
  if (!listener) throw std::system_error(errno, std::generic_category());
  return listener->socket.release();
}

StorePointer connect(const Environment& environment, Milliseconds timeout) {
  try {
    StoreServer server{.is_here = serves_store(environment)};
    if (server.is_here) server.listen_fd = listening_socket(environment);
    return open_tcp_store(place_of_store(environment), server, timeout);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    refuse_store(environment, timeout, error);
  }
}

[[noreturn]] void refuse_file(const std::string& file, const std::string& why) {
  throw UserError(fmt::format("init method file://{}: {}", file, why));
}

// c10d waits for a folder that is not there.
StorePointer open_file(const Environment& environment, const std::string& file,
                       Milliseconds timeout) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    refuse_file(file, fmt::format("there is no folder {} on this host; make it, or name a file of "
                                  "a folder that all ranks share",
                                  folder.string()));
  }
  try {
    StorePointer store =
        c10::make_intrusive<c10d::FileStore>(file, static_cast<int>(environment.world_size));
    store->setTimeout(timeout);
    return store;
  } catch (const std::exception& error) {
    refuse_file(file, error_text(error));
  }
}

// What a run that was killed has left would be taken for this one's.
void require_new(c10d::Store& store, const Environment& environment, const std::string& file) {
  if (store.add(fmt::format("came/{}", environment.rank), 1) == 1) return;
  refuse_file(file, fmt::format("rank {} has come there before: the file is left from a run that "
                                "was killed, or two processes have that rank. Remove the file "
                                "before a new run, or name another one",
                                environment.rank));
}

// The store may be a launcher's agent's, which others use, too.
StorePointer prefixed(StorePointer store) {
  return c10::make_intrusive<c10d::PrefixStore>("phalanx", std::move(store));
}

}  // namespace

std::string place_of_ranks(const Environment& environment) {
  std::string file = store_file(environment);
  if (!file.empty()) return file;
  return fmt::format("{}:{}", place_of_store(environment).host, environment.master_port);
}

std::string address_towards_ranks(const Environment& environment, Milliseconds timeout) {
  if (!store_file(environment).empty()) {
    std::string address = local_address_towards(host_name(), kAnyPort);
    return address.empty() ? kLoopbackAddress : address;
  }
  require_known_host(place_of_store(environment));
  return wait_for_route(place_of_store(environment), timeout);
}

StorePointer open_store_of_ranks(const Environment& environment, Milliseconds timeout) {
  const std::string file = store_file(environment);
  if (file.empty()) return prefixed(connect(environment, timeout));
  StorePointer store = prefixed(open_file(environment, file, timeout));
  require_new(*store, environment, file);
  return store;
}

}  // namespace phalanx
