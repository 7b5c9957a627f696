// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/save.h"

#include "trainer/checkpoint/save/planned_save.h"

namespace phalanx {

SavedCheckpoint save_checkpoint(const std::filesystem::path& checkpoints_dir,
                                const Snapshot& snapshot, const SaveOptions& options,
                                const Ranks& ranks) {
  PlannedSave save(checkpoints_dir, snapshot, options, ranks);
  return save.run(ranks, [&](std::size_t piece) { return save.values(piece).cpu(); });
}

}  // namespace phalanx
