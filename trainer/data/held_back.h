// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// How much of the training data is held back for validation where that has no data of its own: a
/// share of it, and no more than a limit.
struct HeldBack {
  double fraction = 0;
  std::optional<int64_t> limit;  ///< Nothing: the share alone counts.

  /// How many of `size` tokens or pairs are held back: the last ones.
  int64_t of(int64_t size) const;
  /// Whether the limit makes that less than the share.
  bool is_bounded(int64_t size) const;
};

/// What was held back of several sources, for the screen at the start.
class HeldBackSum {
 public:
  /// Adds a source.
  void add(const HeldBack& rule, int64_t size);

  /// "the last 1048576 of 12000000 bytes, bounded by task.data.validation_limit", `field`; empty:
  /// nothing is held back.
  std::string text(std::string_view element, std::string_view field) const;

 private:
  int64_t sources_ = 0;
  int64_t held_back_ = 0;
  int64_t all_ = 0;
  bool is_bounded_ = false;
};

}  // namespace phalanx
