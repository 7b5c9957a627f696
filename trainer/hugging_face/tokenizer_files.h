// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "trainer/api/attachments.h"

namespace phalanx {

/// The files of a tokenizer in a folder of Hugging Face's libraries, byte for byte, in a fixed
/// order; symbolic links are followed. Throws UserError for one that cannot be carried, IoError.
Attachments tokenizer_files(const std::filesystem::path& folder);

}  // namespace phalanx
