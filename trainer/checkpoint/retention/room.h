// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/stateful.h"
#include "trainer/checkpoint/retention/planned_saves.h"
#include "trainer/checkpoint/retention/retention.h"

namespace phalanx {

class Ranks;

/// Bytes of the tensors of a checkpoint, whoever holds them. Every rank calls it.
uint64_t checkpoint_bytes(const Ranks& ranks, std::span<const ShardedTensorView> model,
                          std::span<const ShardedTensorView> optimizer,
                          std::span<const StatePart> parts = {});

/// How many more checkpoints a folder must have room for at a time than are there, the steps of
/// which are given: an old one goes only after the new one is committed; the one that a run came
/// from stays, and so do those that keep_every_n_steps keeps, or all where keep_last is null. As
/// far as the saves to come are known. The best and the one that the run came from may be among the
/// last, so it can be a few more than will be, never fewer.
int64_t checkpoints_to_come(const Retention& retention, std::span<const int64_t> existing,
                            const PlannedSaves& saves);

/// What becomes of a run without room for its checkpoints.
enum class WithoutRoom { ends, goes_on };

/// Throws UserError, with what is missing and what to do that is not done yet, unless the folder's
/// file system has room for so many checkpoints of so many bytes each. Quotas it does not know of.
void require_room(const std::filesystem::path& folder, const Retention& retention, int64_t count,
                  uint64_t bytes, WithoutRoom without = WithoutRoom::ends);

/// Throws UserError on all ranks, naming those that do not see what rank 0 writes into the folder:
/// every rank writes its part there. Every rank calls it.
void require_shared(const Ranks& ranks, const std::filesystem::path& folder);

}  // namespace phalanx
