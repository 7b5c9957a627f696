// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/checkpoint/load/load.h"
#include "trainer/config/tree/node.h"
#include "trainer/registry/hugging_face.h"

namespace phalanx {

/// What a checkpoint says of the model in it.
struct ExportedModel {
  config::Node run;               ///< The whole config.
  config::Node section;           ///< Its section `model`, resolved.
  const HuggingFaceModel& table;  ///< What that is in Hugging Face's libraries.
};

/// Throws UserError where a checkpoint does not say, or the model has no form there.
ExportedModel exported_model(const Checkpoint& checkpoint);

}  // namespace phalanx
