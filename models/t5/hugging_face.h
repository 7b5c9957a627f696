// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/registry/hugging_face.h"

namespace phalanx::t5 {

/// T5 in Hugging Face's libraries (transformers' T5ForConditionalGeneration). In a separate file,
/// because the model's headers take seconds to compile.
const HuggingFaceModel& hugging_face_table();

}  // namespace phalanx::t5
