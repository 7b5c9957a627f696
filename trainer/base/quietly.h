// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace phalanx {

/// Calls `action`, whatever it throws. For what ends while an error is on its way: a device or a
/// rank that does not answer any more fails there again, and the first error is the one to tell.
template <class Action>
void quietly(const Action& action) noexcept {
  try {
    action();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see above
  }
}

}  // namespace phalanx
