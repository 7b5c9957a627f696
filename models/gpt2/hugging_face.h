// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/registry/hugging_face.h"

namespace phalanx::gpt2 {

/// GPT-2's names in Hugging Face's libraries (transformers' GPT2LMHeadModel). Apart from the model,
/// whose headers take seconds to compile.
const HuggingFaceModel& hugging_face_names();

}  // namespace phalanx::gpt2
