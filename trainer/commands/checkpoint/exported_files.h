// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/api/attachments.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/config/tree/node.h"

namespace phalanx {

/// The files that an export of a checkpoint has beside weights and config.json: those that the
/// checkpoint carries, unchanged except for the token that ends a text. generation_config.json and
/// the tokenizer's files name the one that the run has learned; one that is missing is made. `run`
/// is the run's config, `model_type` that of the config.json beside them, empty if there is
/// none. Transformers' AutoTokenizer makes the run's tokenizer of a tokenizer.json among them.
/// Throws UserError, CheckpointError.
Attachments exported_files(const Checkpoint& checkpoint, const config::Node& run,
                           const std::string& model_type);

/// Gives a config.json the tokens that generation_config.json has, and that the other tokens that
/// writing a text takes. Transformers reads them from either, and from the latter first.
void agree_on_tokens(config::Node& config, Attachments& files);

}  // namespace phalanx
