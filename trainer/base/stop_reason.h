// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace phalanx {

/// Why a launcher asks its ranks to stop, in memory that it shares with those that it forks: a
/// signal says no more than that they shall.
class StopReason {
 public:
  /// In the launcher, before ranks are forked, and between two rounds of them: nothing is said yet.
  static void clear();
  /// In the launcher: one line, before it sends the signal. A long one is cut.
  static void set(std::string_view reason);
  /// In a rank; empty where the launcher has said nothing.
  static std::string text();
};

}  // namespace phalanx
