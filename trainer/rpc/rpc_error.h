// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#include "trainer/ranks/failures/communication_error.h"

namespace phalanx::rpc {

/// A worker is gone, or has not answered within the timeout. The message names it, its rank and
/// what it was asked for.
class WorkerLost : public CommunicationError {
 public:
  using CommunicationError::CommunicationError;
};

/// A function has thrown where it ran. The message names the worker and the function, and ends with
/// the text of what it threw.
class RemoteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace phalanx::rpc
