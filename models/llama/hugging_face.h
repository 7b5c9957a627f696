// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trainer/registry/hugging_face.h"

namespace phalanx::llama {

/// Llama in Hugging Face's libraries (transformers' LlamaForCausalLM, and Qwen2ForCausalLM with
/// attention_qkv_bias). In a separate file, because the model's headers take seconds to compile.
const HuggingFaceModel& hugging_face_table();

}  // namespace phalanx::llama
