// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "trainer/api/attachments.h"

namespace phalanx {

/// The files of a tokenizer in a folder of Hugging Face's libraries, byte for byte, in a fixed
/// order; symbolic links are followed. Throws UserError for one that cannot be carried, IoError.
Attachments tokenizer_files(const std::filesystem::path& folder);

/// All that goes with the model of such a folder, beside weights and config.json: the tokenizer's
/// files, chat templates, and generation_config.json, which is made of config.json's tokens where
/// the folder has none. Throws as tokenizer_files, and UserError for a generation_config.json or
/// config.json that cannot be read.
Attachments model_files(const std::filesystem::path& folder);

/// Whether a file of this name is one of a tokenizer's or a chat template.
bool is_tokenizer_file(std::string_view name);

}  // namespace phalanx
