// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "trainer/api/attachments.h"
#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/state.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/mixins/checkpoint_config.h"

namespace phalanx {

class TrainerBase;

/// Throws UserError where a run cannot go on from a checkpoint in the same course: with other
/// training data, unless the user wants that, another tokenizer or other samples a step.
/// `other_way` is what else the user may do about the data. Sets the trainer's micro-batches a
/// step.
void require_same_course(TrainerBase& trainer, const Checkpoint& checkpoint,
                         const Attachments& attachments, const CheckpointConfig& config,
                         const std::string& other_way);

/// Where a run goes on from a checkpoint: with other data in a new epoch, as no place in the old
/// order is one in the new. Rank 0 says so. `earlier` is the checkpoint's config. Throws UserError
/// where the run's length with other data is not given in steps.
State state_to_go_on_from(const TrainerBase& trainer, const Manifest& manifest,
                          const CheckpointConfig& config, const config::Node& earlier);

/// Gives the trainer's kept states what a checkpoint that is loaded says of them. Rank 0 says which
/// begin anew, as the checkpoint lacks them, and which parts of the checkpoint this run has no use
/// for. Throws UserError of a state that cannot go on from it.
void restore_kept_state(const TrainerBase& trainer, const Checkpoint& checkpoint);

/// "runs/a/checkpoints/step-00000040: step 40, 28 tensors of the model and 56 of the optimizer".
std::string loaded_run_text(const TrainerBase& trainer, const Checkpoint& checkpoint);

/// "gpt2: 148 tensors taken, 1 left there, 2 missing there and initialised", with the step of a
/// checkpoint that has one. `named` is the source under our names, which has filled these views.
std::string loaded_model_text(const Checkpoint& named, std::span<const ShardedTensorView> views);

}  // namespace phalanx
