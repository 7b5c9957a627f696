// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace phalanx::fsdp {

/// The order in which forward passes call units, by their numbers: says what comes next, by the
/// pass before.
class CallOrder {
 public:
  /// A unit that the pass before called at this place.
  struct Next {
    std::size_t unit;
    /// This pass has gone the way of the one before so far, and that one went as its own before
    /// did, from end to end. The second pass has only the first to go by.
    bool is_steady;
  };

  /// A forward pass begins.
  void begin();
  /// A unit is called; `is_kept` where its backward pass is to come. Returns what the pass before
  /// called after the same unit at the same place.
  std::optional<Next> call(std::size_t unit, bool is_kept);
  /// The units of this pass whose backward pass is to come, by call.
  const std::vector<std::size_t>& calls() const { return calls_; }
  /// The backward pass is over: this is the pass before from now on. Passes without a backward one
  /// are not remembered.
  void end();

 private:
  std::vector<std::size_t> calls_;
  std::vector<std::size_t> known_;  ///< The calls of the pass before.
  std::size_t place_ = 0;           ///< Calls in this pass so far, all of them.
  bool follows_ = true;             ///< This pass goes the way of the one before.
  bool is_steady_ = true;           ///< The one before went as its own before.
};

}  // namespace phalanx::fsdp
