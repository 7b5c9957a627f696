// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/ranks/collectives/activity.h"
#include "trainer/ranks/collectives/make_process_group.h"
#include "trainer/ranks/ranks.h"
#include "trainer/ranks/stores/group_store.h"

namespace phalanx {

class Presence;

/// What Ranks stand on. A world of one until `attach`.
struct Ranks::Group {
  /// `of_whole`: the end of the group that this one is a part of, which is this one's too.
  explicit Group(std::shared_ptr<const GroupEnd> of_whole = nullptr);
  ~Group();

  /// Connects this group; rank, world_size, timeout and name are set before.
  void attach(c10::intrusive_ptr<c10d::Store> new_store, MakeProcessGroup make_process_group);

  /// The store of `key_value_store` by a connection of its own. Not in a world of one.
  std::shared_ptr<KeyValueStore> another_line() const;

  /// Ends the group, and those made of it, and forgets its connections.
  void detach();

  /// Sets the local rank and world size by `rank` and `hosts`.
  void find_place_on_host();

  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  int64_t local_world_size = 1;
  std::vector<int64_t> hosts{0};  ///< A number for the host of each rank.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  ///< The limit of one operation.
  std::string name = "world";  ///< The same on all ranks: the prefix of its keys.
  std::string label;           ///< What the user calls it, for errors; empty: nothing.
  /// Where its connections listen, an address of this host; empty: where GLOO_SOCKET_IFNAME says.
  std::string address;
  c10::intrusive_ptr<c10d::Store> store;  ///< Without a prefix: subgroups meet there too.
  bool as_c10d = false;   ///< Others than Phalanx are in it: each operation is c10d's of that name.
  MakeProcessGroup make;  ///< For subgroups.
  c10::intrusive_ptr<c10d::ProcessGroup> process_group;
  std::shared_ptr<GroupEnd> end;
  std::shared_ptr<GroupStore> key_value_store;
  std::shared_ptr<Activity> activity = std::make_shared<Activity>("starting");
  std::shared_ptr<Presence> presence;  ///< The world's, where it has several ranks.
  int64_t subgroups = 0;               ///< Made so far; names them alike on all ranks.
};

}  // namespace phalanx
