// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/commands/use/data_use.h"

namespace phalanx {

/// Gives the config for a model alone, a Hugging Face folder or a checkpoint that was imported of
/// one, what the command line leaves out: its tokenizer, or that of `--tokenizer`; the files that
/// the command reads, in the place of a run's training data; sequences of 1,024 tokens or the
/// model's context; micro-batches of about 4,096 tokens; for predictions of sequence_to_sequence
/// the field `text` as input. A causal model that is evaluated on files, and no task named, models
/// language: each document by itself. Throws UserError where the task or its tokenizer is still not
/// known.
void complete_folder_task(const TrainedModel& trained, const DataUse& use, UserConfig& user);

}  // namespace phalanx
