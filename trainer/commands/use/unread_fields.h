// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "trainer/cli/command.h"

namespace phalanx {

/// Throws UserError for an override of a field that has no effect on what `generate` writes with a
/// Hugging Face folder: what only a run's training, validation or task reads. It names what takes
/// its place, if something does.
void refuse_unread_fields(const std::filesystem::path& folder, Arguments overrides);

}  // namespace phalanx
