// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/load/load.h"

namespace phalanx {

class Ranks;

/// What `load_first_good` came to.
struct LoadedCheckpoint {
  std::optional<Checkpoint> checkpoint;  ///< Nothing when there was none to try.
  std::vector<std::string> warnings;     ///< What was skipped, and why. The same on all ranks.
};

/// As open_checkpoint.
using OpenCheckpoint = std::function<Checkpoint(const std::filesystem::path&)>;

/// How candidates are tried.
struct Trying {
  OpenCheckpoint open = open_checkpoint;
  std::string advice = {};  ///< What to do where none is good.
  /// Lists candidates anew where none is good: a run that goes on may have saved a newer one and
  /// removed those that were listed. Rank 0 calls it; what it throws stands in the error behind
  /// what is wrong with those.
  std::function<std::vector<std::filesystem::path>()> list_again = {};
};

/// Calls `load` on every rank with one checkpoint after the other, rank 0's list, until one is good
/// on all. What is damaged, or cannot be read, on any rank is skipped on all. Throws
/// CheckpointError where none is good: to begin again would be to lose what there is. An error of
/// `load` that does not come from the checkpoint, as UserError, ends it, on the other ranks as
/// CommunicationError.
LoadedCheckpoint load_first_good(const Ranks& ranks,
                                 std::span<const std::filesystem::path> candidates,
                                 const std::function<void(const Checkpoint&)>& load,
                                 const Trying& trying = {});

}  // namespace phalanx
