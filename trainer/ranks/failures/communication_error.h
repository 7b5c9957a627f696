// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace phalanx {

/// Another rank is gone, or silent beyond the timeout; the group is dead after it. The message says
/// what this rank was doing and waiting for.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace phalanx
