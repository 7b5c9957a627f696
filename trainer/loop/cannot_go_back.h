// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace phalanx {

/// A guard undoes a step, and the run cannot go back to a checkpoint. The message says why and what
/// to do, as the end of a sentence: "no checkpoint is saved yet. ..."
class CannotGoBack : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace phalanx
