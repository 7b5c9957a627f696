// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "trainer/checkpoint/load/load.h"
#include "trainer/io/byte_progress.h"

namespace phalanx {

/// Reads every byte of a checkpoint, on all cores that this process may use, and compares; model
/// and optimizer files must also be sound safetensors files that agree with the manifest, and
/// SHA256SUMS, if present, must match all files. Throws CheckpointError naming what is wrong, or
/// IoError. `progress`, if given, counts the bytes that are done.
Checkpoint verify_checkpoint(const std::filesystem::path& path, ByteProgress* progress = nullptr);

}  // namespace phalanx
