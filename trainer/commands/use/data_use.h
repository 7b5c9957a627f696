// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/cli/command.h"
#include "trainer/commands/use/trained_model.h"
#include "trainer/run/load_config.h"

namespace phalanx {

/// What a command that reads data with a trained model is asked for.
struct DataUse {
  enum class Kind { evaluate, predict };

  Kind kind = Kind::evaluate;
  std::vector<std::filesystem::path> files = {};
  std::vector<std::string> overrides = {};
  std::optional<std::filesystem::path> layer = {};  ///< --config.
  std::optional<std::string> tokenizer = {};        ///< --tokenizer.
};

/// The flag --config of such a command.
inline Flag layer_flag() {
  return {.name = "--config",
          .summary = "a YAML file with fields of the config; key=value counts more",
          .takes = Flag::Takes::path};
}

/// The config for it: the model's, with the layer over it, and the overrides. `--tokenizer` takes
/// the place of every tokenizer that the task names; the checkpoint's own that of one that the
/// run's config names and that has moved, and a line on standard error says so. What names no task
/// gets what complete_folder_task sets. Throws UserError.
UserConfig config_for(const DataUse& use, const TrainedModel& trained);

}  // namespace phalanx
