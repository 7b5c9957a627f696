#pragma once

#include <filesystem>

#include "trainer/checkpoint/load.h"

namespace phalanx {

/// Whether a path is a safetensors file, or a folder with a model as Hugging Face's libraries save
/// it: `model.safetensors`, or several files with `model.safetensors.index.json`.
bool is_safetensors_model(const std::filesystem::path& path);

/// Such a model as a checkpoint without optimizer, state and checksums. Throws CheckpointError
/// naming the file and what is wrong, or IoError.
Checkpoint open_safetensors_model(const std::filesystem::path& path);

}  // namespace phalanx
