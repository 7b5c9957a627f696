#include "trainer/checkpoint/load_newest.h"

#include <utility>

#include "trainer/checkpoint/find.h"
#include "trainer/checkpoint/layout.h"
#include "trainer/checkpoint/load.h"
#include "trainer/checkpoint/load_first_good.h"

namespace phalanx {

std::optional<Resumed> load_newest(const std::filesystem::path& checkpoints_dir,
                                   std::span<const ShardedTensorView> model,
                                   std::span<const ShardedTensorView> optimizer,
                                   const Ranks& ranks) {
  std::vector<std::filesystem::path> found;
  on_first_rank(ranks, [&] {
    clean_leftovers(checkpoints_dir);
    found = candidates(checkpoints_dir);
  });
  Resumed resumed;
  LoadedCheckpoint loaded = load_first_good(ranks, found, [&](const Checkpoint& checkpoint) {
    resumed.rng_states = load_checkpoint(checkpoint, model, optimizer, ranks.rank()).rng_states;
  });
  if (!loaded.checkpoint) return std::nullopt;
  resumed.state = loaded.checkpoint->manifest.state;
  on_first_rank(ranks, [&] { point_latest_at(checkpoints_dir, resumed.state.step); });
  resumed.warnings = std::move(loaded.warnings);
  return resumed;
}

}  // namespace phalanx
