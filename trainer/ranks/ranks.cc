// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <set>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/collectives/start_operation.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {

Ranks::Group::Group(std::shared_ptr<const GroupEnd> of_whole)
    : end(std::make_shared<GroupEnd>(std::move(of_whole))),
      key_value_store(std::make_shared<GroupStore>(end, make_local_store())) {}
Ranks::Group::~Group() = default;

namespace {

constexpr const char* kTexts = "texts";

// Ranks that list others would wait for each other; one that lists itself twice, for itself.
void require_members(const Ranks& ranks, std::span<const int64_t> members) {
  if (members.empty()) throw std::invalid_argument("subgroup: a group has one rank at least");
  std::set<int64_t> seen;
  for (const int64_t member : members) {
    require_rank(ranks, "subgroup", member);
    if (seen.insert(member).second) continue;
    throw std::invalid_argument(fmt::format("subgroup: rank {} is named twice", member));
  }
}

std::string key_prefix(const std::string& group, const char* what) {
  return fmt::format("{}/{}", group, what);
}

}  // namespace

void Ranks::Group::attach(c10::intrusive_ptr<c10d::Store> new_store,
                          MakeProcessGroup make_process_group) {
  store = std::move(new_store);
  make = std::move(make_process_group);
  const auto prefixed = [&](const char* what) {
    return c10::make_intrusive<c10d::PrefixStore>(key_prefix(name, what), store);
  };
  key_value_store = std::make_shared<GroupStore>(end, make_key_value_store(prefixed(kTexts)));
  if (world_size > 1) process_group = make(prefixed("group"), rank, world_size, timeout);
}

std::shared_ptr<KeyValueStore> Ranks::Group::another_line() const {
  return make_key_value_store(
      c10::make_intrusive<c10d::PrefixStore>(key_prefix(name, kTexts), store->clone()));
}

void Ranks::Group::detach() {
  end->reach();
  process_group.reset();
  key_value_store->release();
  store.reset();
}

void Ranks::Group::find_place_on_host() {
  const auto here = hosts.begin() + rank;
  local_rank = std::count(hosts.begin(), here, *here);
  local_world_size = std::count(hosts.begin(), hosts.end(), *here);
}

Ranks::Ranks() : group_(std::make_shared<Group>()) {}
Ranks::Ranks(std::shared_ptr<Group> group) : group_(std::move(group)) {}

int64_t Ranks::rank() const { return group_->rank; }
int64_t Ranks::world_size() const { return group_->world_size; }
int64_t Ranks::local_rank() const { return group_->local_rank; }
int64_t Ranks::local_world_size() const { return group_->local_world_size; }

KeyValueStore& Ranks::store() const { return *group_->key_value_store; }
std::shared_ptr<KeyValueStore> Ranks::shared_store() const { return group_->key_value_store; }

std::optional<Ranks> Ranks::subgroup(std::span<const int64_t> members,
                                     const GroupOptions& options) const {
  group_->end->require_open("subgroup");
  require_members(*this, members);
  const auto place = std::find(members.begin(), members.end(), rank());
  const int64_t number = group_->subgroups++;
  if (place == members.end()) return std::nullopt;
  auto group = std::make_shared<Group>(group_->end);
  group->rank = place - members.begin();
  group->world_size = static_cast<int64_t>(members.size());
  group->hosts.clear();
  for (const int64_t member : members) {
    group->hosts.push_back(group_->hosts.at(static_cast<std::size_t>(member)));
  }
  group->find_place_on_host();
  group->timeout = options.timeout.value_or(group_->timeout);
  group->name = fmt::format("{}/{}", group_->name, number);
  group->label = options.name;
  group->activity = group_->activity;
  group->as_c10d = group_->as_c10d;
  group->address = group_->address;
  if (!is_single_rank()) group->attach(group_->store, group_->make);
  Ranks ranks(std::move(group));
  // Who has connected may drop the group at once, which would end the connections that others still
  // make (so does torch.distributed: distributed_c10d.py, _store_based_barrier).
  ranks.barrier();
  return ranks;
}

Ranks Ranks::separate(std::string_view activity) const {
  group_->end->require_open("separate");
  std::vector<int64_t> all(static_cast<std::size_t>(world_size()));
  std::iota(all.begin(), all.end(), 0);
  Ranks ranks = *subgroup(all);
  // Not shared: what one thread sets the other may read.
  ranks.group_->activity = std::make_shared<Activity>(activity);
  return ranks;
}

std::chrono::milliseconds Ranks::timeout() const { return group_->timeout; }

void Ranks::set_activity(std::string_view activity) const { group_->activity->set(activity); }
const std::string& Ranks::activity() const { return group_->activity->text(); }

void Ranks::close() const {
  try {
    if (group_->process_group) group_->process_group->shutdown();
  } catch (const std::exception&) {
    // A rank that is faster has closed its end already; after the barrier nothing is lost by it.
  }
  group_->detach();
}

void Ranks::abort() const {
  if (group_->process_group) group_->process_group->abort();
  group_->detach();
}

}  // namespace phalanx
