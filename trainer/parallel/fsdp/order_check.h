// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/parallel/fsdp/known_passes.h"
#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// Finds ranks that go different ways before they wait for each other, or exchange parts of
/// different units. In the first pass of each kind every rank tells the next rank what it is about
/// to do, and compares with what the one before tells: where all neighbours agree, all ranks do,
/// for one message of each rank, however many there are. Later it compares with the pass that
/// KnownPasses expects, which costs nothing; where it leaves that order it tells so in the store,
/// goes on when all others have left it in the same way, and compares the rest of the pass as in a
/// first one. It asks the store too where a pass without a backward one follows one with, or the
/// reverse: there it waits as long as for a collective, as ranks may come there at different times.
class OrderCheck {
 public:
  /// `units`: their names, for errors; empty: the root.
  OrderCheck(Ranks ranks, std::vector<std::string> units, std::chrono::milliseconds timeout);

  /// A pass begins. `goes_on`: the one before has not come to its end. Two with gradients are then
  /// compared as one.
  void begin(PassKind kind, bool goes_on);
  /// Before the collectives of a unit's action. Throws std::runtime_error naming this rank, the
  /// unit and the other rank, where they differ.
  void next(Action action, std::size_t unit);
  /// The pass has come to its end.
  void end();

 private:
  void compare(const PassStep& step);
  void compare_with_neighbour(const PassStep& step) const;
  void leave_order(const PassStep& step);
  std::string compare_in_store(const PassStep& step);
  bool others_come(const std::string& key, std::chrono::milliseconds timeout);
  template <class Result>
  Result ask_store(std::chrono::milliseconds timeout,
                   std::function<Result(KeyValueStore&)> question) const;
  std::string describe(const PassStep& step) const;

  Ranks ranks_;
  std::vector<std::string> units_;
  std::chrono::milliseconds timeout_;
  int64_t number_;  ///< The same on all ranks.
  KnownPasses known_passes_;
  const PassSteps* known_ = nullptr;  ///< How this pass is expected to go.
  PassSteps steps_;                   ///< The steps of this pass.
  bool has_order_ = false;            ///< It goes the way that is expected, so far.
  std::optional<PassKind> kind_;      ///< The kind of the pass that began last.
  int64_t passes_ = 0;                ///< Begun so far: the same on all ranks.
  std::vector<std::string> keys_;     ///< In the store, since all were at one place.
};

}  // namespace phalanx::fsdp
