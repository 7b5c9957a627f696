// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace phalanx {

/// Throws UserError for a path that is known not to lead to a checkpoint, with what is there and
/// what to do: a folder of Hugging Face's libraries, adapters alone, pickles, a folder whose
/// weights are missing. Returns where it is none of these.
void refuse_foreign(const std::filesystem::path& path);

}  // namespace phalanx
