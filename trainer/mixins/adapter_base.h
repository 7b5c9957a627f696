// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/load/load.h"
#include "trainer/config/tree/node.h"

namespace phalanx {

class Console;
struct CheckpointConfig;
class Ranks;
class TaskModel;

/// The model that adapters are trained beside.
class AdapterBase {
 public:
  /// None: that of a model without adapters.
  AdapterBase() = default;
  AdapterBase(std::filesystem::path source, std::string fingerprint,
              std::vector<std::string> notes);

  /// fingerprint_of its tensors; empty for none.
  const std::string& fingerprint() const { return fingerprint_; }

  /// What a new run is told of the task's modules (SharedModules::notes).
  const std::vector<std::string>& notes() const { return notes_; }

  /// Throws UserError unless the adapters of a checkpoint were trained beside it. None fits all.
  void require_that_of(const Checkpoint& checkpoint) const;

 private:
  std::filesystem::path source_;  ///< checkpoint.load_from
  std::string fingerprint_;
  std::vector<std::string> notes_;
};

/// Throws UserError for a config that does not name all of a model, which a resume finds again:
/// adapters are trained beside it.
void require_adapter_base(const CheckpointConfig& config);

/// Fills what the model's adapters are trained beside from checkpoint.load_from of this config,
/// with the task's modules that are there, and shows on the console how far that is; does nothing
/// for a model without adapters. The same on all ranks. Throws UserError, CheckpointError.
AdapterBase load_adapter_base(Console& console, const Ranks& ranks, const TaskModel& model,
                              const config::Node& resolved);

}  // namespace phalanx
