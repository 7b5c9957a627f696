// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/registry/hugging_face.h"

namespace phalanx::llama {

/// Llama's names in Hugging Face's libraries (transformers' LlamaForCausalLM, and Qwen2ForCausalLM
/// with attention_qkv_bias). Apart from the model, whose headers take seconds to compile.
const HuggingFaceModel& hugging_face_names();

}  // namespace phalanx::llama
