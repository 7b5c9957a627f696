// SPDX-License-Identifier: Apache-2.0
#include "trainer/simulated/fake_ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/simulated/fake_backend.h"

namespace phalanx {
namespace {

// Where one rank counts itself, all others have done so at once.
class FakeStore final : public c10d::HashStore {
 public:
  explicit FakeStore(int64_t world_size) : world_size_(world_size) {}
  int64_t add(const std::string& key, int64_t value) override {
    return HashStore::add(key, value * world_size_);
  }

 private:
  int64_t world_size_;
};

// The prefix under which a group's ranks meet is the only thing that tells a maker of process
// groups which one it makes. PrefixStore keeps it for those who derive from it.
struct Prefix : c10d::PrefixStore {
  static const std::string& of(const c10d::PrefixStore& store) { return store.*&Prefix::prefix_; }
};

std::string group_name(const c10d::Store& store) {
  std::string_view prefix = Prefix::of(dynamic_cast<const c10d::PrefixStore&>(store));
  constexpr std::string_view kEnd = "/group";
  if (prefix.ends_with(kEnd)) prefix.remove_suffix(kEnd.size());
  return std::string(prefix);
}

MakeProcessGroup process_group_maker(std::shared_ptr<CollectiveLog> log) {
  using BackendType = c10d::ProcessGroup::BackendType;
  return [log = std::move(log)](c10::intrusive_ptr<c10d::Store> store, int64_t rank,
                                int64_t world_size, std::chrono::milliseconds /*timeout*/) {
    auto backend = make_fake_backend(group_name(*store), {.place = rank, .size = world_size}, log);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(std::move(store), static_cast<int>(rank),
                                                         static_cast<int>(world_size));
    group->setBackend(c10::kCPU, BackendType::CUSTOM, std::move(backend));
    group->setDefaultBackend(BackendType::CUSTOM);
    return group;
  };
}

std::shared_ptr<Ranks::Group> group_of(int64_t rank, std::vector<int64_t> hosts) {
  auto group = std::make_shared<Ranks::Group>();
  group->rank = rank;
  group->world_size = std::ssize(hosts);
  group->hosts = std::move(hosts);
  return group;
}

Ranks joined(std::shared_ptr<Ranks::Group> group, std::shared_ptr<CollectiveLog> log) {
  group->attach(c10::make_intrusive<FakeStore>(group->world_size),
                process_group_maker(std::move(log)));
  return Ranks(std::move(group));
}

}  // namespace

Ranks fake_ranks(int64_t rank, int64_t world_size, int64_t local_world_size,
                 std::shared_ptr<CollectiveLog> log) {
  if (rank < 0 || rank >= world_size || local_world_size < 1) {
    throw std::invalid_argument(fmt::format("there is no rank {} of {} on hosts of {}", rank,
                                            world_size, local_world_size));
  }
  std::vector<int64_t> hosts;
  for (int64_t r = 0; r < world_size; ++r) hosts.push_back(r / local_world_size);
  auto group = group_of(rank, std::move(hosts));
  group->local_rank = rank % local_world_size;
  group->local_world_size = local_world_size;
  return joined(std::move(group), std::move(log));
}

Ranks fake_ranks(int64_t rank, std::vector<int64_t> hosts, std::shared_ptr<CollectiveLog> log) {
  if (rank < 0 || rank >= std::ssize(hosts)) {
    throw std::invalid_argument(fmt::format("there is no rank {} of {}", rank, hosts.size()));
  }
  auto group = group_of(rank, std::move(hosts));
  group->find_place_on_host();
  return joined(std::move(group), std::move(log));
}

}  // namespace phalanx
