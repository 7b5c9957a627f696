// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace phalanx {

/// A checkpoint file that is damaged, or is not what it claims to be. The message names the file.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace phalanx
