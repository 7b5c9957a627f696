// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/api/attachments.h"
#include "trainer/checkpoint/load/model_copy.h"

namespace phalanx {

/// Copies into a folder, and shows on a terminal how far that is. Throws as ModelCopy.
Contents copy_model(const ModelCopy& copy, const std::filesystem::path& folder,
                    const std::string& what);

/// Makes the folder of a copied model a checkpoint of step 0, with these attachments. `config` is
/// JSON; `base` is Manifest::base. Throws IoError.
void write_model_manifest(Contents model, const Attachments& attachments, std::string config,
                          std::string base, const std::filesystem::path& folder);

/// "28 tensors, 57.3 kB in 1 file": what was written.
std::string summary_of(const Contents& model);

}  // namespace phalanx
