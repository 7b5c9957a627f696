// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/test_device/host_syncs.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/parallel/init_from_env.h"

namespace phalanx::test_device {

/// A small GPT-2 that learns bytes, as a config of the composition `supervised`: some steps,
/// without validation, and without a checkpoint before its end.
struct TrainingRun {
  std::filesystem::path folder;  ///< Its text and its logs; the test's.
  int64_t steps = 10;
  std::vector<std::string> overrides;  ///< As on the command line: "optimizer.name=lion".
};

/// The trainer of a run, built as the program builds it, but with this world's device.
std::unique_ptr<AnyTrainer> make_trainer(const TrainingRun& run, const World& world);

/// A world of one rank on this device.
World world_of_one(at::Device device);

/// What there is to compare of a run.
struct Trained {
  std::map<std::string, at::Tensor> weights;  ///< As this rank holds them, in host memory.
  /// By step: what the host waited for from the end of the step before to its own end.
  std::map<int64_t, std::vector<HostSync>> syncs;
};

/// Trains a run to its end.
Trained train(const TrainingRun& run, const World& world);

}  // namespace phalanx::test_device
