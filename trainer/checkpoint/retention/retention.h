// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/tracked_metric.h"

namespace phalanx {

namespace config {
template <class T>
class Schema;
}

/// Checkpoints that stay for what was measured with their weights.
struct KeepBest {
  std::string metric = "loss";  ///< A name in Manifest::metrics.
  Better mode = Better::lower;
  int64_t k = 1;  ///< How many (>= 1).

  static void describe(config::Schema<KeepBest>& s);
};

/// What stays after a save, beside the newest.
struct Retention {
  std::optional<int64_t> keep_last = {};           ///< So many of the newest (>= 1); none: all.
  std::optional<int64_t> keep_every_n_steps = {};  ///< Those whose step n (>= 1) divides.
  std::optional<KeepBest> keep_best = {};
  std::optional<int64_t> resumed_step = {};  ///< The checkpoint that this run came from.
  std::optional<int64_t> newest_step = {};   ///< Whatever the files' times say of their order.
};

/// A committed checkpoint, as retention looks at it.
struct Retained {
  int64_t step = 0;
  std::optional<double> metric = {};  ///< keep_best's; none: it was not measured, or NaN.
};

/// A value that was measured with a checkpoint's weights; nothing where it was not, or is NaN, and
/// where the checkpoint cannot be read.
std::optional<double> metric_of(const std::filesystem::path& checkpoint, const std::string& name);

/// The steps whose checkpoints go; those given are in order of commit. The newest never goes. The
/// later of two that are equally good is the better. Throws std::logic_error for numbers below 1.
std::vector<int64_t> to_prune(std::span<const Retained> checkpoints, const Retention& retention);

/// The same for the committed checkpoints of a folder, where the one that `latest` names stays as
/// well. Throws IoError.
std::vector<int64_t> to_prune(const std::filesystem::path& checkpoints_dir, Retention retention);

/// Removes what need not stay; returns a warning for each that cannot be removed. A removal that is
/// cut short leaves nothing under the checkpoint's name. Throws IoError where the folder cannot be
/// listed.
std::vector<std::string> prune(const std::filesystem::path& checkpoints_dir,
                               const Retention& retention);

}  // namespace phalanx
