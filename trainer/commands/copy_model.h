// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/model_copy.h"

namespace phalanx {

/// Copies tensors into a folder, and shows on a terminal how far that is. Throws as ModelCopy.
Manifest copy_model(const Checkpoint& source, std::vector<CopiedTensor> tensors,
                    const std::filesystem::path& folder, const std::string& what);

/// "28 tensors, 57.3 kB in 1 file": what a manifest lists.
std::string summary_of(const Manifest& model);

}  // namespace phalanx
