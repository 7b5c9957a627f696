// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/save/commit.h"
#include "trainer/checkpoint/save/piece_writer.h"
#include "trainer/checkpoint/save/save.h"

namespace phalanx {

/// One rank's side of a save, in two halves: what has to be known of the tensors, and the writing,
/// which may be done later and by another thread, once their values have been put aside.
class PlannedSave {
 public:
  /// Exchanges who holds what, unless `options.kept_plan` knows. Every rank makes one. Throws as
  /// save_checkpoint.
  PlannedSave(std::filesystem::path checkpoints_dir, Snapshot snapshot, SaveOptions options,
              const Ranks& ranks);

  int64_t step() const { return snapshot_.state.step; }
  const WritePlan& plan() const { return *plan_; }
  /// The values of a piece whose source this rank is: where they lie if they are contiguous there.
  at::Tensor values(std::size_t piece) const;
  /// The tensor that they are of, on this rank.
  const ShardedTensorView& view_of(const PlannedPiece& piece) const;
  /// Lets go of the tensors.
  void forget_tensors();

  /// Writes and commits, with the same ranks, be it through other connections. Throws as
  /// save_checkpoint.
  SavedCheckpoint run(const Ranks& ranks, const PieceValues& values);

 private:
  void add_part(std::string name, Layout layout, std::vector<ShardedTensorView> views);
  WritePlan make_plan(const Ranks& ranks, const std::string& host) const;
  void stage(const Ranks& ranks);
  uint64_t bytes_to_do(int64_t rank) const;
  void write(const Ranks& ranks, const std::filesystem::path& staged, const PieceValues& values);
  void sum_files(const Ranks& ranks, const std::filesystem::path& staged);
  Manifest manifest(const Ranks& ranks) const;
  void commit(Manifest manifest);
  void write_attached(Manifest& manifest);
  void remove_old();

  std::filesystem::path folder_;
  Snapshot snapshot_;
  SaveOptions options_;
  std::vector<PlannedPart> parts_;                     ///< Without their tensors.
  std::vector<std::vector<ShardedTensorView>> views_;  ///< The views of each part.
  std::shared_ptr<const WritePlan> plan_;
  SavedCheckpoint saved_;
  std::optional<StagedFolder> staged_;
  std::string previous_;
  std::vector<std::string> checksums_;         ///< For each rank's pieces, in the plan's order.
  std::map<std::string, std::string> sha256_;  ///< For files by name, where they are asked for.
};

}  // namespace phalanx
