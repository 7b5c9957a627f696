// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/rendezvous/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/host/cores.h"
#include "trainer/host/host.h"
#include "trainer/host/local_address.h"
#include "trainer/parallel/rendezvous/store_of_ranks.h"
#include "trainer/ranks/environment/init_method.h"

namespace phalanx {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr const char* kAllHere = "all_here";
constexpr const char* kMissing = "missing ";
constexpr const char* kNone = "none";
constexpr uint16_t kAnyPort = 1;  // A route does not depend on it.

double seconds(Milliseconds time) { return std::chrono::duration<double>(time).count(); }

// Where a rank says that it is.
struct Announcement {
  int64_t local_rank = 0;  // As its launcher counts; or kFromHosts, likewise the next.
  int64_t local_world_size = 1;
  std::string address;   // On the way to the store.
  std::string loopback;  // loopback_identity.
  std::string machine;   // host_identity.
  std::string cores;     // allowed_cores.
  std::string name;      // host_name.
};

nlohmann::json to_json(const Announcement& rank) {
  return {rank.local_rank, rank.local_world_size, rank.address,
          rank.loopback,   rank.machine,          rank.cores,
          rank.name};
}

Announcement announcement_in(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {.local_rank = json[0],
          .local_world_size = json[1],
          .address = json[2],
          .loopback = json[3],
          .machine = json[4],
          .cores = json[5],
          .name = json[6]};
}

// A host is what a launcher counts local ranks on. Several launchers may share a machine, and ranks
// come in any order: the n-th rank of one machine with the same local rank is on its n-th host.
// Without local ranks a host is a machine.
std::vector<int64_t> number_hosts(const std::vector<Announcement>& announcements) {
  std::map<std::tuple<std::string, int64_t, int64_t>, int64_t> ranks_at;
  std::map<std::tuple<std::string, int64_t, int64_t>, int64_t> hosts;
  std::vector<int64_t> numbers;
  for (const Announcement& rank : announcements) {
    const bool is_counted = rank.local_rank != kFromHosts;
    const int64_t nth =
        is_counted ? ranks_at[{rank.machine, rank.local_world_size, rank.local_rank}]++ : 0;
    const auto next = static_cast<int64_t>(hosts.size());
    numbers.push_back(
        hosts.try_emplace({rank.machine, rank.local_world_size, nth}, next).first->second);
  }
  return numbers;
}

bool share_loopback(const std::vector<Announcement>& announcements) {
  return std::ranges::all_of(announcements, [&](const Announcement& rank) {
    return rank.loopback == announcements.front().loopback;
  });
}

// An address beyond the store's host, by which the ranks on that host find their own.
std::string address_beyond(const std::vector<Announcement>& announcements) {
  const auto found = std::ranges::find_if(
      announcements, [](const Announcement& rank) { return !is_loopback(rank.address); });
  return found == announcements.end() ? kNone : found->address;
}

// Ranks of one host that may use the same cores have the same number.
std::vector<int64_t> number_cores(const std::vector<Announcement>& announcements,
                                  const std::vector<int64_t>& hosts) {
  std::map<std::pair<int64_t, std::string>, int64_t> sets;
  std::vector<int64_t> numbers;
  for (size_t rank = 0; rank < announcements.size(); ++rank) {
    const auto next = static_cast<int64_t>(sets.size());
    numbers.push_back(
        sets.try_emplace({hosts[rank], announcements[rank].cores}, next).first->second);
  }
  return numbers;
}

// Those that the launcher has given, in whatever order; without them ranks count on their host.
std::vector<int64_t> local_ranks_of(const std::vector<Announcement>& announcements,
                                    const std::vector<int64_t>& hosts) {
  std::map<int64_t, int64_t> ranks_on;
  std::vector<int64_t> local_ranks;
  for (size_t rank = 0; rank < announcements.size(); ++rank) {
    const int64_t nth = ranks_on[hosts[rank]]++;
    const int64_t given = announcements[rank].local_rank;
    local_ranks.push_back(given == kFromHosts ? nth : given);
  }
  return local_ranks;
}

std::vector<std::string> names_of(const std::vector<Announcement>& announcements) {
  std::vector<std::string> names;
  for (const Announcement& rank : announcements) names.push_back(rank.name);
  return names;
}

// What rank 0 tells all. The address: that of loopback if it suffices, else one beyond its host.
std::string to_text(const std::vector<Announcement>& announcements) {
  const std::vector<int64_t> hosts = number_hosts(announcements);
  const nlohmann::json roll = {
      {"address", share_loopback(announcements) ? kLoopbackAddress : address_beyond(announcements)},
      {"hosts", hosts},
      {"names", names_of(announcements)},
      {"local_ranks", local_ranks_of(announcements, hosts)},
      {"cores", number_cores(announcements, hosts)}};
  return roll.dump();
}

// `beyond` is what rank 0 told.
std::string own_address(const Announcement& here, const std::string& beyond,
                        const Environment& environment) {
  if (beyond == kLoopbackAddress) return beyond;
  if (!is_loopback(here.address)) return here.address;
  if (beyond != kNone) {
    std::string address = local_address_towards(beyond, kAnyPort);
    if (!address.empty() && !is_loopback(address)) return address;
  }
  throw UserError(fmt::format(
      "the ranks are on several hosts, and this one has no address that the others reach: set "
      "{}GLOO_SOCKET_IFNAME to the network interface to use (`ip address` lists them)",
      store_file(environment).empty()
          ? "MASTER_ADDR to an address of rank 0's host in their network, or "
          : ""));
}

// The ranks that `numbers` gives the same number as this one.
std::vector<int64_t> ranks_alike(const std::vector<int64_t>& numbers, int64_t rank) {
  std::vector<int64_t> alike;
  for (size_t each = 0; each < numbers.size(); ++each) {
    if (numbers[each] == numbers[static_cast<size_t>(rank)]) {
      alike.push_back(static_cast<int64_t>(each));
    }
  }
  return alike;
}

std::string here_key(int64_t rank) { return fmt::format("here/{}", rank); }

// Waits until the key is there; false when the time is over.
bool wait_for(c10d::Store& store, const std::string& key, Milliseconds timeout) {
  try {
    store.wait({key}, timeout);
    return true;
  } catch (const c10::DistStoreError&) {
    return false;
  } catch (const c10::Error& error) {
    // A FileStore's error has no kind of its own.
    if (error.msg().find("Wait timeout") == std::string::npos) throw;
    return false;
  }
}

// Rank 0 looks who has come and tells the others.
std::string take_roll(c10d::Store& store, const Environment& environment, Milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::vector<Announcement> announcements;
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < environment.world_size; ++rank) {
    const auto left =
        std::chrono::duration_cast<Milliseconds>(end - std::chrono::steady_clock::now());
    if (wait_for(store, here_key(rank), std::max(left, Milliseconds(1)))) {
      announcements.push_back(announcement_in(store.get_to_str(here_key(rank))));
    } else {
      missing.push_back(rank);
    }
  }
  const std::string answer = missing.empty()
                                 ? to_text(announcements)
                                 : fmt::format("{}{}", kMissing, fmt::join(missing, ", "));
  store.set(kAllHere, answer);
  return answer;
}

std::string learn_roll(c10d::Store& store, Milliseconds timeout) {
  // Rank 0 may have come later than this one, and waits as long.
  if (wait_for(store, kAllHere, 2 * timeout)) return store.get_to_str(kAllHere);
  return std::string(kMissing) + "0";
}

}  // namespace

c10::intrusive_ptr<c10d::Store> open_job_store(const Environment& environment,
                                               Milliseconds timeout) {
  address_towards_ranks(environment, timeout);
  return open_store_of_ranks(environment, timeout);
}

Rendezvous meet(const Environment& environment, Milliseconds timeout) {
  const Announcement here{.local_rank = environment.local_rank,
                          .local_world_size = environment.local_world_size,
                          .address = address_towards_ranks(environment, timeout),
                          .loopback = loopback_identity(),
                          .machine = host_identity(),
                          .cores = allowed_cores(),
                          .name = host_name()};
  Rendezvous rendezvous;
  rendezvous.job_store = open_store_of_ranks(environment, timeout);
  rendezvous.store = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("attempt_{}", environment.restart_count), rendezvous.job_store);
  c10d::Store& store = *rendezvous.store;
  store.set(here_key(environment.rank), to_json(here).dump());
  const std::string answer =
      environment.rank == 0 ? take_roll(store, environment, timeout) : learn_roll(store, timeout);
  if (answer.starts_with(kMissing)) {
    throw UserError(fmt::format(
        "after {} s these of {} ranks have not come to {}: {}. Are they started, and with the same "
        "{}?",
        seconds(timeout), environment.world_size, place_of_ranks(environment),
        answer.substr(std::string_view(kMissing).size()),
        store_file(environment).empty() ? "MASTER_ADDR, MASTER_PORT and WORLD_SIZE"
                                        : "file and world size"));
  }
  const auto roll = nlohmann::json::parse(answer);
  rendezvous.hosts = roll["hosts"].get<std::vector<int64_t>>();
  rendezvous.host_names = roll["names"].get<std::vector<std::string>>();
  rendezvous.local_ranks = roll["local_ranks"].get<std::vector<int64_t>>();
  rendezvous.ranks_on_cores =
      ranks_alike(roll["cores"].get<std::vector<int64_t>>(), environment.rank);
  const bool is_chosen = std::getenv("GLOO_SOCKET_IFNAME") != nullptr;
  if (!is_chosen) {
    rendezvous.address = own_address(here, roll["address"], environment);
  }
  return rendezvous;
}

}  // namespace phalanx
