// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/load_newest.h"

#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/io/file.h"

namespace phalanx {

std::optional<Resumed> load_newest(const std::filesystem::path& checkpoints_dir,
                                   std::span<const ShardedTensorView> model,
                                   std::span<const ShardedTensorView> optimizer,
                                   const Ranks& ranks) {
  Resumed resumed;
  std::vector<std::filesystem::path> found;
  on_first_rank(ranks, [&] {
    try {
      clean_leftovers(checkpoints_dir);
    } catch (const IoError& error) {
      resumed.warnings.emplace_back(error.what());  // as in a copy that may not be changed
    }
    found = candidates(checkpoints_dir);
  });
  LoadedCheckpoint loaded = load_first_good(ranks, found, [&](const Checkpoint& checkpoint) {
    resumed.rng_states = load_checkpoint(checkpoint, model, optimizer, ranks.rank()).rng_states;
  });
  if (!loaded.checkpoint) return std::nullopt;
  resumed.state = loaded.checkpoint->manifest.state;
  resumed.warnings.insert(resumed.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  if (ranks.is_first() && loaded.warnings.empty()) {
    const std::string warning = repair_latest(checkpoints_dir, resumed.state.step);
    if (!warning.empty()) resumed.warnings.push_back(warning);
  }
  return resumed;
}

}  // namespace phalanx
