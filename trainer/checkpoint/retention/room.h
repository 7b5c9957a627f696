// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/retention/retention.h"

namespace phalanx {

class Ranks;

/// Bytes of the tensors of a checkpoint, whoever holds them. Every rank calls it.
uint64_t checkpoint_bytes(const Ranks& ranks, std::span<const ShardedTensorView> model,
                          std::span<const ShardedTensorView> optimizer);

/// How many more checkpoints a folder must have room for than are there: an old one goes only after
/// the new one is committed, and the one that a run came from stays beside them. `saves`: as many
/// as will still be written, where that is known. Those that keep_every_n_steps keeps, and all
/// where keep_last is null, are not counted ahead.
int64_t checkpoints_to_come(const Retention& retention, int64_t existing,
                            std::optional<int64_t> saves);

/// Throws UserError, with what is missing and what to do, unless the folder's file system has room
/// for so many checkpoints of so many bytes each. Quotas it does not know of.
void require_room(const std::filesystem::path& folder, int64_t count, uint64_t bytes);

/// Throws UserError on all ranks, naming those that do not see what rank 0 writes into the folder:
/// every rank writes its part there. Every rank calls it.
void require_shared(const Ranks& ranks, const std::filesystem::path& folder);

}  // namespace phalanx
