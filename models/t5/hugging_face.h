// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/registry/hugging_face.h"

namespace phalanx::t5 {

/// T5's names in Hugging Face's libraries (transformers' T5ForConditionalGeneration). Apart from
/// the model, whose headers take seconds to compile.
const HuggingFaceModel& hugging_face_names();

}  // namespace phalanx::t5
