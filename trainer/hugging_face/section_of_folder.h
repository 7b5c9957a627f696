// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/checkpoint/load/load.h"
#include "trainer/config/tree/node.h"
#include "trainer/registry/hugging_face.h"

namespace phalanx {

/// The fields of the section `model` for a folder with this config.json, not resolved. As
/// transformers does, takes tensors apart that the config calls tied where they differ in the files
/// (HuggingFaceName::only_if): T5 v1.1's config cannot say so from transformers 5 on. Throws
/// UserError (section_of_hugging_face), CheckpointError, IoError.
config::Node section_of_folder(const Checkpoint& folder, const HuggingFaceModel& model,
                               const config::Node& config);

}  // namespace phalanx
