// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx::fsdp {

/// What a pass is; each kind has an order of its own.
enum class PassKind { training, accumulating, without_backward, backward_alone };

/// What a rank does next that others must do too.
enum class Action { begin, use, reduce, average, end };

/// Finds ranks that go different ways before they wait for each other, or exchange parts of
/// different units. In the first pass of each kind every rank tells the next rank what it is about
/// to do, and compares with what the one before tells: where all neighbours agree, all ranks do,
/// for one message of each rank, however many there are. Later it compares with its own pass
/// before, which costs nothing; where it leaves that order it tells so in the store, goes on when
/// all others have left it in the same way, and compares the rest of the pass as in a first one. It
/// asks the store too where a pass without a backward one follows one with, or the reverse: there
/// it waits as long as for a collective, as ranks may come there at different times.
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
  struct Step {
    Action action = Action::end;
    std::size_t unit = 0;
    bool operator==(const Step&) const = default;
  };

  void compare(const Step& step);
  void compare_with_neighbour(const Step& step) const;
  void leave_order(const Step& step);
  std::string compare_in_store(const Step& step);
  bool others_come(const std::string& key, std::chrono::milliseconds timeout);
  template <class Result>
  Result ask_store(std::chrono::milliseconds timeout,
                   std::function<Result(KeyValueStore&)> question) const;
  std::string describe(const Step& step) const;

  Ranks ranks_;
  std::vector<std::string> units_;
  std::chrono::milliseconds timeout_;
  int64_t number_;                          ///< The same on all ranks.
  std::array<std::vector<Step>, 4> known_;  ///< The last whole pass of each kind.
  std::vector<Step> steps_;                 ///< The steps of this pass.
  bool has_order_ = false;                  ///< It goes the way of the pass before, so far.
  std::optional<PassKind> kind_;            ///< The kind of the pass that began last.
  int64_t passes_ = 0;                      ///< Begun so far: the same on all ranks.
  std::vector<std::string> keys_;           ///< In the store, since all were at one place.
};

}  // namespace phalanx::fsdp
