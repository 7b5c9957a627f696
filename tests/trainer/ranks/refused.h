// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

namespace phalanx {

/// What an operation of ranks is refused with on this rank, before any other is asked.
inline std::string refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace phalanx
