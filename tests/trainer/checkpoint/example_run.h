// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/api/sharded_tensor_view.h"
#include "trainer/checkpoint/load/find.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/save/save.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {

/// The tensors of a small run, whose values follow from the step, so that a test can tell whether
/// a checkpoint is whole and of one step.
struct ExampleRun {
  at::Tensor weight = tensors::zeros({64, 16});
  at::Tensor bias = tensors::zeros({16}, at::kDouble);
  at::Tensor moment = tensors::zeros({64, 16});
  at::Tensor rng = tensors::zeros({40}, at::kByte);

  void set_to(int64_t step);

  std::vector<ShardedTensorView> model() const;
  std::vector<ShardedTensorView> optimizer() const;

  /// The snapshot at the end of `step`, with these tensors' values set to it.
  Snapshot snapshot(int64_t step);

  /// Whether all values are those of `step`.
  bool is_at(int64_t step) const;
};

/// The newest good checkpoint of a folder, as a run that goes on gets it.
struct FoundRun {
  int64_t step = -1;                  ///< None: there is no checkpoint.
  bool is_whole = false;              ///< All values are that step's.
  std::vector<std::string> warnings;  ///< What was skipped.
};

FoundRun load_newest(const std::filesystem::path& checkpoints_dir);

}  // namespace phalanx
