// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/ranks/ranks.h"

namespace phalanx {

/// One tensor on its way from or to another rank.
struct Transfer {
  enum class Kind { send, receive };
  Kind kind = Kind::send;
  at::Tensor tensor;
  int64_t peer = 0;  ///< The rank it goes to, or comes from.
  int tag = 0;       ///< As Ranks::send's.
};

/// Starts all of them, so that ranks that send to each other do not wait for each other
/// (torch.distributed's batch_isend_irecv); wait for each. Throws std::invalid_argument for a peer
/// that is not there, or is this rank.
std::vector<Pending> start_transfers(const Ranks& ranks, const std::vector<Transfer>& transfers);

/// Receives a tensor with this tag from whichever rank sends one first, and returns that rank.
/// Through Gloo alone: throws std::invalid_argument for a tensor that NCCL would move.
int64_t receive_from_any(const Ranks& ranks, const at::Tensor& tensor, int tag = 0);

}  // namespace phalanx
