// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "trainer/checkpoint/load/load.h"

namespace phalanx {

/// The file that tells which of several files of a model holds which tensor.
inline constexpr const char* kSafetensorsIndex = "model.safetensors.index.json";

/// The file of each tensor by its name, as such an index says: names of files are anything yet.
/// Throws CheckpointError, or IoError.
std::map<std::string, std::string> read_safetensors_index(const std::filesystem::path& path);

/// Whether a path is a safetensors file, or a folder with a model as Hugging Face's libraries save
/// it: `model.safetensors`, or several files with `model.safetensors.index.json`.
bool is_safetensors_model(const std::filesystem::path& path);

/// Such a model as a checkpoint without optimizer, state and checksums. Throws CheckpointError
/// naming the file and what is wrong, or IoError.
Checkpoint open_safetensors_model(const std::filesystem::path& path);

}  // namespace phalanx
