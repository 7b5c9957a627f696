// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "trainer/checkpoint/format/manifest.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

class TrainerBase;

/// Whether a guard of this config may have the run go back to a checkpoint.
bool may_go_back(const config::Node& resolved);

/// Whether the trainer's kept states are other ones than those of a checkpoint: it lacks one, or
/// has it otherwise than it is once it is restored from there. A run could not go back to it.
bool differs_in_kept_state(const TrainerBase& trainer, const Manifest& manifest);

/// Goes back to the newest good checkpoint of a folder in the midst of the training, with the data
/// where it is: loads model, optimizer, kept states and random numbers. Returns its manifest. Every
/// rank calls it. Throws CannotGoBack where the folder has no checkpoint that can be loaded, or the
/// one to go back to lacks a kept state, which would stay as the undone steps have left it.
Manifest go_back_to_newest(TrainerBase& trainer, const std::filesystem::path& folder);

}  // namespace phalanx
