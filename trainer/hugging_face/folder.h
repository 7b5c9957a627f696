// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "trainer/config/tree/node.h"

namespace phalanx {

/// Whether a path is a folder that save_pretrained wrote: config.json beside safetensors. A
/// checkpoint is none, whatever lies in it.
bool is_hugging_face_folder(const std::filesystem::path& path);

/// Its config.json. Throws UserError if it is missing or cannot be read, and where the weights
/// would not be the model: with adapters of peft beside them, or quantized.
config::Node read_hugging_face_config(const std::filesystem::path& folder);

/// What such a config says the model is. Throws UserError if it does not say.
std::string model_type_of(const config::Node& config);

}  // namespace phalanx
