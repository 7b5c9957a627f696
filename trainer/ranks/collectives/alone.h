// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// For the length of a scope this thread does what the other ranks take no part in, as after an
/// error: every operation of Ranks and of their stores that it begins throws std::logic_error.
class Alone {
 public:
  Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone();

  /// Whether this thread is in such a scope.
  static bool is_active();

 private:
  bool before_;
};

}  // namespace phalanx
