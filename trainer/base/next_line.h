// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Who prints the command that goes on with a run which a signal has ended (`next:`): its first
/// rank, or the launcher that has forked the ranks, where it may start them again by itself, as
/// without a node that leaves.
class NextLine {
 public:
  /// In the launcher, before it forks ranks: it prints the line, once it has ended.
  static void leave_to_launcher();
  /// In the launcher, and in the ranks that it has forked since.
  static bool is_left_to_launcher();
};

}  // namespace phalanx
