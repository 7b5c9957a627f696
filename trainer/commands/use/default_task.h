// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/cli/command.h"
#include "trainer/commands/use/trained_model.h"

namespace phalanx {

/// The overrides with which a causal model of a Hugging Face folder is evaluated on files, where
/// `overrides` name no task: by the folder's tokenizer, each document by itself, and all of the
/// file. None for another model, a folder without a tokenizer, and without files.
std::vector<std::string> default_task(const TrainedModel& trained, Arguments overrides,
                                      const std::vector<std::filesystem::path>& files);

}  // namespace phalanx
