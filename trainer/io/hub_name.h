// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx {

/// "'gpt2' does not exist", for a path that leads nowhere. Where it may be a name of Hugging Face's
/// hub ("gpt2", "org/name"), goes on with how to download it.
std::string about_missing(const std::filesystem::path& path);

}  // namespace phalanx
