// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// What is asked of the other ranks.
enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  send,
  receive,
  barrier,
};

/// "all-reduce", "all-to-all", ...
std::string to_string(CollectiveKind kind);

/// One collective or transfer, as one rank began it. What all ranks of the group must have in
/// common: between equal ones of a collective they understand each other.
struct Collective {
  CollectiveKind kind = CollectiveKind::barrier;
  std::string group = "world";  ///< "world/3": the fourth subgroup that was made of the world.
  /// Bytes of this rank's input, padding included; of the tensor that is reduced or broadcast in
  /// place.
  int64_t input_bytes = 0;
  int64_t output_bytes = 0;                            ///< Bytes of what this rank has after it.
  c10::ScalarType dtype = c10::ScalarType::Undefined;  ///< The type of both.
  std::optional<Reduction> reduction = std::nullopt;
  std::optional<int64_t> peer =
      std::nullopt;  ///< Source or destination, by its place in the group.

  bool operator==(const Collective&) const = default;
};

/// "all-gather on world/3: 64 to 512 bytes of Float"
std::string to_string(const Collective& collective);

/// A rank's place in a group.
struct GroupPlace {
  int64_t place = 0;
  int64_t size = 1;

  bool operator==(const GroupPlace&) const = default;
};

/// What one rank asked of the others, in order. For one thread at a time.
class CollectiveLog {
 public:
  void add(Collective collective) { collectives_.push_back(std::move(collective)); }
  /// Notes a group that the rank has become a member of.
  void join(const std::string& group, GroupPlace place) { groups_.emplace(group, place); }

  const std::vector<Collective>& collectives() const { return collectives_; }
  /// The groups that the rank is a member of, by name.
  const std::map<std::string, GroupPlace>& groups() const { return groups_; }

  /// Forgets the collectives so far; the groups remain.
  void clear() { collectives_.clear(); }

 private:
  std::vector<Collective> collectives_;
  std::map<std::string, GroupPlace> groups_;
};

/// Who is in which group, put together from what each rank knows: its own place. So ranks that
/// disagree about a group are found, which none of them could tell alone.
class GroupRoster {
 public:
  /// For the place of a rank that has not been added.
  static constexpr int64_t kUnknown = -1;

  /// Throws std::logic_error where another rank has this rank's place in a group, or saw the group
  /// in another size.
  void add(int64_t world_rank, const CollectiveLog& log);

  /// The world's ranks in each place of each group, by the group's name.
  const std::map<std::string, std::vector<int64_t>>& members() const { return members_; }

 private:
  std::map<std::string, std::vector<int64_t>> members_;
};

}  // namespace phalanx
