// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/api/attachments.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/config/tree/node.h"
#include "trainer/mixins/checkpoint_config.h"

namespace phalanx {

/// Takes the model's fields from what `checkpoint.load_from` names into a config that is not
/// resolved yet: from a folder of Hugging Face's libraries, or the file of its weights; from a run
/// or a checkpoint where the config names no model.
/// Throws UserError, also for a source that is not there or does not say what the model is, where
/// the config does not say it either.
void complete_model(config::Node& tree);

/// Refuses, before ranks are started, a source of first weights that is not there; of a folder of
/// Hugging Face's libraries also another model, or tensors that are missing, unexpected or of
/// another shape; and one whose rows of the vocabulary cannot be taken as `load_vocabulary` says.
/// Throws UserError.
void check_first_weights(const CheckpointConfig& config, const config::Node& resolved);

/// A source with its tensors under our names: by `load_prefixes`, and those of a Hugging Face
/// folder by the model's table.
Checkpoint named_as_ours(const Checkpoint& source, const CheckpointConfig& config,
                         const config::Node& resolved);

/// The files that go with a source of first weights, beside these: those of a Hugging Face folder
/// (model_files), or what a checkpoint carries; of several, the first good one's.
Attachments files_of_source(const std::filesystem::path& source);

/// A note for the user where the folder holds a tokenizer that the run does not use; otherwise "".
std::string tokenizer_note(const CheckpointConfig& config, std::span<const Attachment> attachments);

}  // namespace phalanx
