// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/ranks/failures/pauses.h"
#include "trainer/ranks/failures/roll_call.h"

namespace phalanx {

class Activity;
class KeyValueStore;

/// Where a rank answers, and what it knows of the others.
struct PlaceInRollCall {
  int64_t rank = 0;
  std::vector<std::string> hosts;            ///< The name of each rank's host.
  bool rank_0_serves_store = false;          ///< Or a launcher does.
  std::shared_ptr<const Activity> activity;  ///< What this rank does.
};

/// A rank's sign of life. A thread of its own answers when another rank, whose collective has
/// failed, calls the roll, and keeps what that one finds. Until then it waits for a key of the
/// ranks' store, and costs no message. A process that is stopped does not answer; one whose main
/// thread hangs says where.
class Presence {
 public:
  /// `line` is a connection with the store for this alone: a wait holds it.
  Presence(PlaceInRollCall place, std::shared_ptr<KeyValueStore> line);
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  /// Gives the thread up where it has not ended.
  ~Presence();

  const PlaceInRollCall& place() const;
  /// What this rank would answer now.
  SignOfLife sign() const;
  /// When this process has not run.
  const PauseWatch& pauses() const { return pauses_; }
  /// What roll_call::kVerdict was after a roll call that this rank has answered.
  std::optional<std::string> verdict() const;

  /// Ends the thread; gives up soon where the store is silent. `store`: the same store, by another
  /// connection.
  void end(const std::shared_ptr<KeyValueStore>& store);

 private:
  struct Shared;
  static void answer(const std::shared_ptr<Shared>& shared,
                     const std::shared_ptr<KeyValueStore>& line);

  PauseWatch pauses_;
  std::shared_ptr<Shared> shared_;  ///< With the thread, which may outlive this.
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace phalanx
