// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace phalanx {

class Ranks;

/// Every rank does its part, and learns whether all could: they go on together, or all throw
/// SaveError with the message of the first that could not. A CommunicationError, with which there
/// is nothing left to agree by, goes through.
void together(const Ranks& ranks, const std::function<void()>& action);

}  // namespace phalanx
