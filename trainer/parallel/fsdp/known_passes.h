// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace phalanx::fsdp {

/// What a pass is; each kind has an order of its own.
enum class PassKind { training, accumulating, without_backward, backward_alone };

/// What a rank does next that others must do too.
enum class Action { begin, use, reduce, average, end };

/// An action on a unit, by its number; of `begin` the pass's kind.
struct PassStep {
  Action action = Action::end;
  std::size_t unit = 0;
  bool operator==(const PassStep&) const = default;
};

using PassSteps = std::vector<PassStep>;

/// The passes so far, and which of them followed which: a training step may have several that
/// differ, in an order that repeats itself.
class KnownPasses {
 public:
  /// The pass of this kind that comes next if all goes on as it did: the one that followed the
  /// newest pass the last time, or else the newest of the kind. nullptr: there was none. Valid
  /// until `add`.
  const PassSteps* expected(PassKind kind) const;
  /// A pass has come to its end.
  void add(PassKind kind, const PassSteps& steps);

 private:
  std::size_t number_of(const PassSteps& steps);

  std::vector<std::unique_ptr<const PassSteps>> passes_;  ///< Each once.
  std::map<std::pair<PassKind, std::size_t>, std::size_t> next_;
  std::array<std::optional<std::size_t>, 4> newest_;  ///< By kind.
  std::optional<std::size_t> before_;                 ///< The newest of all kinds.
};

}  // namespace phalanx::fsdp
