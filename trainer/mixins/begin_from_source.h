// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/api/attachments.h"
#include "trainer/config/tree/forward.h"
#include "trainer/mixins/checkpoint_config.h"

namespace phalanx {

class TrainerBase;

/// check_first_weights, with the field that names the source before what is wrong with it. Throws
/// UserError.
void check_source(const CheckpointConfig& config, const config::Node& resolved);

/// Begins a new run with what another one, or another program, has learned: with the model of
/// `checkpoint.load_from`, or with all of a run. Returns what the start prints of it.
/// `attachments` are the task's. Every rank calls it. Throws UserError where the source does not
/// fit, and CheckpointError where none of its checkpoints is good.
std::string begin_from_source(TrainerBase& trainer, const Attachments& attachments,
                              const CheckpointConfig& config);

}  // namespace phalanx
