// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainer/api/attachments.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/config/tree/node.h"
#include "trainer/mixins/checkpoint_config.h"

namespace phalanx {

class Console;
class Ranks;
class TaskModel;

/// Takes the model's fields from the folder that `checkpoint.load_from` names, where it is one of
/// Hugging Face's libraries, into a config that is not resolved yet. Throws UserError.
void complete_model(config::Node& tree);

/// Refuses, before ranks are started, a source of first weights that is not there; of a folder of
/// Hugging Face's libraries also another model, or tensors that are missing, unexpected or of
/// another shape. Throws UserError.
void check_first_weights(const CheckpointConfig& config, const config::Node& resolved);

/// A source with its tensors under our names: by `load_prefixes`, and those of a Hugging Face
/// folder by the model's table.
Checkpoint named_as_ours(const Checkpoint& source, const CheckpointConfig& config,
                         const config::Node& resolved);

/// A note for the user where the folder holds a tokenizer that the run does not use; otherwise "".
std::string tokenizer_note(const CheckpointConfig& config, std::span<const Attachment> attachments);

/// Fills what adapters are trained beside, from `load_from`, and shows on the console how far that
/// is. Returns its fingerprint, the same on all ranks. Throws UserError, CheckpointError.
std::string load_base(Console& console, const Ranks& ranks, const TaskModel& model,
                      const CheckpointConfig& config, const config::Node& resolved);

/// Throws UserError unless the adapters of a checkpoint were trained beside this base.
void require_same_base(const Checkpoint& checkpoint, const std::string& base,
                       const CheckpointConfig& config);

}  // namespace phalanx
