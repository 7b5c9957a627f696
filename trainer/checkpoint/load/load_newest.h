// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/state.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/random.h"

namespace phalanx {

/// What a custom loop goes on from.
struct Resumed {
  State state;                        ///< When the checkpoint was saved.
  RngStates rng_states;               ///< This rank's; empty for one that there was not.
  std::vector<std::string> warnings;  ///< Which newer ones were skipped, and why; and the like.
};

/// Fills the views from the newest good checkpoint of a folder that save_checkpoint has written
/// into, whatever ranks saved it; nothing if the folder has none yet. What a save that was cut
/// short has left there is removed. Every rank calls it. Throws UserError for another model or
/// optimizer, CheckpointError if the folder has checkpoints and none of them is good. To keep the
/// one that a run came from, give its step to save_checkpoint (Retention::resumed_step).
std::optional<Resumed> load_newest(const std::filesystem::path& checkpoints_dir,
                                   std::span<const ShardedTensorView> model,
                                   std::span<const ShardedTensorView> optimizer,
                                   const Ranks& ranks = {});

}  // namespace phalanx
