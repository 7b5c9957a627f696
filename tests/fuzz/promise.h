// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace phalanx::fuzzing {

/// A broken promise of the code that is fuzzed. No target catches it, so it ends the fuzzer's run.
class Violation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws Violation with `promise` unless it holds.
inline void require(bool holds, const std::string& promise) {
  if (!holds) throw Violation(promise);
}

}  // namespace phalanx::fuzzing
