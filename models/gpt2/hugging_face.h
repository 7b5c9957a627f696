// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/registry/hugging_face.h"

namespace phalanx::gpt2 {

/// GPT-2 in Hugging Face's libraries (transformers' GPT2LMHeadModel). In a separate file, because
/// the model's headers take seconds to compile.
const HuggingFaceModel& hugging_face_table();

}  // namespace phalanx::gpt2
