// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/base/host.h"
#include "trainer/base/user_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using Milliseconds = std::chrono::milliseconds;
using StorePointer = c10::intrusive_ptr<c10d::Store>;

constexpr const char* kAllHere = "all_here";
constexpr const char* kMissing = "missing ";

double seconds(Milliseconds time) { return std::chrono::duration<double>(time).count(); }

// TCPStore would try an unknown name until its timeout.
void require_known_address(const Environment& environment) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(environment.master_addr.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, ::freeaddrinfo);
  if (error == 0) return;
  throw UserError(fmt::format(
      "MASTER_ADDR is '{}', which this host does not know: {}. Set it to the name or address of "
      "rank 0's host",
      environment.master_addr, ::gai_strerror(error)));
}

bool serves_store(const Environment& environment) {
  return environment.rank == 0 && !environment.agent_store;
}

[[noreturn]] void refuse_store(const Environment& environment, Milliseconds timeout,
                               const std::exception& error) {
  const std::string place = fmt::format("{}:{}", environment.master_addr, environment.master_port);
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

StorePointer connect(const Environment& environment, Milliseconds timeout) {
  require_known_address(environment);
  c10d::TCPStoreOptions options;
  options.port = environment.master_port;
  options.isServer = serves_store(environment);
  options.numWorkers = static_cast<size_t>(environment.world_size);
  options.waitWorkers = false;  // it would not say who is missing
  options.timeout = timeout;
  if (options.isServer) options.masterListenFd = environment.listen_fd;
  try {
    return c10::make_intrusive<c10d::TCPStore>(environment.master_addr, options);
  } catch (const std::exception& error) {
    refuse_store(environment, timeout, error);
  }
}

// Where a rank says that it is: its place on its host, and the machine.
struct Place {
  int64_t local_rank = 0;
  int64_t local_world_size = 1;
  std::string machine;
};

std::string to_text(const Place& place) {
  return fmt::format("{} {} {}", place.local_rank, place.local_world_size, place.machine);
}

Place place_in(const std::string& text) {
  Place place;
  std::istringstream words(text);
  words >> place.local_rank >> place.local_world_size >> std::ws;
  std::getline(words, place.machine);  // the last: it may hold spaces
  return place;
}

// A host is what a launcher counts local ranks on. Several launchers may share a machine, and ranks
// come in any order: the n-th rank of one machine with the same local rank is on its n-th host.
std::vector<int64_t> number_hosts(const std::vector<Place>& places) {
  std::map<std::tuple<std::string, int64_t, int64_t>, int64_t> ranks_at;
  std::map<std::tuple<std::string, int64_t, int64_t>, int64_t> hosts;
  std::vector<int64_t> numbers;
  for (const auto& [local_rank, local_world_size, machine] : places) {
    const int64_t nth = ranks_at[{machine, local_world_size, local_rank}]++;
    const auto next = static_cast<int64_t>(hosts.size());
    numbers.push_back(hosts.try_emplace({machine, local_world_size, nth}, next).first->second);
  }
  return numbers;
}

// What rank 0 tells all: who is missing, else whether there is one machine, and the hosts.
std::string to_text(const std::vector<Place>& places) {
  const bool one_machine = std::all_of(places.begin(), places.end(), [&](const Place& place) {
    return place.machine == places.front().machine;
  });
  return fmt::format("{:d} {}", one_machine, fmt::join(number_hosts(places), " "));
}

std::string here_key(int64_t rank) { return fmt::format("here/{}", rank); }

// Waits until the key is there; false when the time is over.
bool wait_for(c10d::Store& store, const std::string& key, Milliseconds timeout) {
  try {
    store.wait({key}, timeout);
    return true;
  } catch (const c10::DistStoreError&) {
    return false;
  }
}

// Rank 0 looks who has come and tells the others.
std::string take_roll(c10d::Store& store, const Environment& environment, Milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::vector<Place> places;
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < environment.world_size; ++rank) {
    const auto left =
        std::chrono::duration_cast<Milliseconds>(end - std::chrono::steady_clock::now());
    if (wait_for(store, here_key(rank), std::max(left, Milliseconds(1)))) {
      places.push_back(place_in(store.get_to_str(here_key(rank))));
    } else {
      missing.push_back(rank);
    }
  }
  const std::string answer =
      missing.empty() ? to_text(places) : fmt::format("{}{}", kMissing, fmt::join(missing, ", "));
  store.set(kAllHere, answer);
  return answer;
}

std::string learn_roll(c10d::Store& store, Milliseconds timeout) {
  // Rank 0 may have come later than this one, and waits as long.
  if (wait_for(store, kAllHere, 2 * timeout)) return store.get_to_str(kAllHere);
  return std::string(kMissing) + "0";
}

}  // namespace

Rendezvous meet(const Environment& environment, Milliseconds timeout) {
  Rendezvous rendezvous;
  rendezvous.job_store =
      c10::make_intrusive<c10d::PrefixStore>("phalanx", connect(environment, timeout));
  rendezvous.store = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("attempt_{}", environment.restart_count), rendezvous.job_store);
  c10d::Store& store = *rendezvous.store;
  const Place here{.local_rank = environment.local_rank,
                   .local_world_size = environment.local_world_size,
                   .machine = host_identity()};
  store.set(here_key(environment.rank), to_text(here));
  const std::string answer =
      environment.rank == 0 ? take_roll(store, environment, timeout) : learn_roll(store, timeout);
  if (answer.starts_with(kMissing)) {
    throw UserError(fmt::format(
        "after {} s these of {} ranks have not come to {}:{}: {}. Are they started, and with the "
        "same MASTER_ADDR, MASTER_PORT and WORLD_SIZE?",
        seconds(timeout), environment.world_size, environment.master_addr, environment.master_port,
        answer.substr(std::string_view(kMissing).size())));
  }
  std::istringstream roll(answer);
  roll >> rendezvous.one_machine;
  rendezvous.hosts.assign(std::istream_iterator<int64_t>(roll), {});
  return rendezvous;
}

}  // namespace phalanx
