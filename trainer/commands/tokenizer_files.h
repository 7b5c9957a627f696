// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "trainer/api/attachments.h"

namespace phalanx {

/// The files of a tokenizer in a folder of Hugging Face's libraries, byte for byte, in a fixed
/// order; symbolic links are followed. Throws UserError for one that cannot be carried, IoError.
Attachments tokenizer_files(const std::filesystem::path& folder);

/// Warns of a tokenizer that cannot be read here, or that has more tokens than its model.
void warn_of_tokenizer(const std::filesystem::path& folder, std::optional<int64_t> vocabulary_size);

}  // namespace phalanx
