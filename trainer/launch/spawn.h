// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

#include "trainer/launch/launcher.h"

namespace phalanx {

/// How ranks that `spawn` has started ended: "rank 1: no such file".
class SpawnError : public std::runtime_error {
 public:
  explicit SpawnError(RankOutcome outcome);

  /// The exit code of the rank that is the cause, and its signal where one killed it.
  const RankOutcome& outcome() const { return outcome_; }

 private:
  RankOutcome outcome_;
};

/// Runs `function` in so many ranks on this host, which are forked from this process, and waits for
/// all (torch.multiprocessing.spawn). A rank joins the others by init_from_env(environment). When
/// one fails, the others have 5 seconds to end, then they are stopped. Throws SpawnError for the
/// first that failed: an exception is exit code 1, a UserError 2. Throws std::logic_error where
/// this process has more than one thread, std::invalid_argument for less than one rank.
///
/// A fork copies one thread, and no device: call it at the beginning of a program, before LibTorch
/// computes something, as OpenMP's and autograd's threads stay, and before anything asks about
/// CUDA. In exchange a rank starts in milliseconds, with memory that it shares with the others.
void spawn(int64_t processes, const std::function<void(const Environment& environment)>& function);

}  // namespace phalanx
