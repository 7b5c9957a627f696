// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainer/api/attachments.h"
#include "trainer/api/sharded_tensor_view.h"
#include "trainer/api/stateful.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/checkpoint/load/load_first_good.h"
#include "trainer/mixins/checkpoint_config.h"
#include "trainer/tensors/random.h"

namespace phalanx {

class Ranks;
class TrainerBase;

/// Warnings on rank 0's standard error, a line each.
void warn_of(const std::vector<std::string>& warnings, const Ranks& ranks);

/// Notes on rank 0's screen, a line each.
void tell(const std::vector<std::string>& notes, const Ranks& ranks);

/// Throws UserError where a run cannot go on from a checkpoint in the same course: with other
/// training data, unless the user wants that, another tokenizer or other samples a step.
/// `other_way` is what else the user may do about the data. Sets the trainer's micro-batches a
/// step.
void require_same_course(TrainerBase& trainer, const Checkpoint& checkpoint,
                         const Attachments& attachments, const CheckpointConfig& config,
                         const std::string& other_way);

/// The kept states of the trainer that bring something, and that a checkpoint lacks, by name.
std::vector<std::string> lacking_parts(const TrainerBase& trainer, const Manifest& manifest);

/// Gives the trainer's kept states what a checkpoint that is loaded says of them; those that it
/// lacks stay as they are. Throws UserError of a state that cannot go on from it.
void restore_kept_state(const TrainerBase& trainer, const Checkpoint& checkpoint);

/// Rank 0 says which states begin anew, as the checkpoint lacks them, and which parts of it this
/// run has no use for.
void tell_of_parts(const TrainerBase& trainer, const Checkpoint& checkpoint);

/// What the trainer's kept states bring to a checkpoint now.
std::vector<StatePart> parts_of(const TrainerBase& trainer);

/// Fills model, optimizer and the tensors of kept states from a checkpoint; `name` is what rank 0
/// calls that. Returns this rank's random numbers. Throws as load_checkpoint.
RngStates load_run(const TrainerBase& trainer, const Checkpoint& checkpoint,
                   const std::string& name);

/// Has the run go on from a checkpoint that load_run has loaded: state, kept states and random
/// numbers; with other data in a new epoch, as rank 0 says. Returns what the start prints of
/// it. Throws UserError of a state that cannot go on from it, and where the run's length with other
/// data is not given in steps.
std::string go_on_from(TrainerBase& trainer, const LoadedCheckpoint& loaded,
                       const RngStates& random, const CheckpointConfig& config);

/// "gpt2: 148 tensors taken, 1 left there, 2 missing there and initialised", with the step of a
/// checkpoint that has one. `named` is the source under our names, which has filled these views.
std::string loaded_model_text(const Checkpoint& named, std::span<const ShardedTensorView> views);

}  // namespace phalanx
